#!/usr/bin/env python3
"""TensorFlow Serving's row format on onnxruntime, FastAPI and uvicorn, as one would write it:

    serving_onnx.py MODEL.onnx PORT [--threads N]

To be loaded beside `lockstep serve` by serving_load.py. `lockstep export` writes the model,
whose images are [n, c, h, w] of what the first layer reads: pixels are divided by 255 here.
Needs fastapi, uvicorn, numpy, onnxruntime.
"""
import argparse

import numpy
import onnxruntime
import uvicorn
from fastapi import FastAPI, Request

parser = argparse.ArgumentParser()
parser.add_argument('model')
parser.add_argument('port', type=int)
parser.add_argument('--threads', type=int, default=0)
asked = parser.parse_args()
options = onnxruntime.SessionOptions()
options.intra_op_num_threads = asked.threads
session = onnxruntime.InferenceSession(asked.model, options)
app = FastAPI()


@app.post('/v1/models/net:predict')
async def predict(request: Request):
    images = numpy.array((await request.json())['instances'], numpy.float32)
    images = numpy.ascontiguousarray(images.transpose(0, 3, 1, 2)) / 255
    found = session.run(None, {session.get_inputs()[0].name: images})[0]
    return {'predictions': found.tolist()}


uvicorn.run(app, host='127.0.0.1', port=asked.port, log_level='error')
