/* Lockstep: a portable OpenCL training engine. All public headers. */
#ifndef LOCKSTEP_LOCKSTEP_H
#define LOCKSTEP_LOCKSTEP_H

#include <lockstep/accuracy.h>
#include <lockstep/batches.h>
#include <lockstep/bench.h>
#include <lockstep/callback.h>
#include <lockstep/compute.h>
#include <lockstep/convert.h>
#include <lockstep/data.h>
#include <lockstep/device.h>
#include <lockstep/field.h>
#include <lockstep/file.h>
#include <lockstep/graph.h>
#include <lockstep/import.h>
#include <lockstep/model.h>
#include <lockstep/place.h>
#include <lockstep/predict.h>
#include <lockstep/progress.h>
#include <lockstep/reference.h>
#include <lockstep/scale.h>
#include <lockstep/serve.h>
#include <lockstep/settings.h>
#include <lockstep/status.h>
#include <lockstep/survey.h>
#include <lockstep/sweep.h>
#include <lockstep/team.h>
#include <lockstep/tensor.h>
#include <lockstep/text.h>
#include <lockstep/train.h>
#include <lockstep/tune.h>
#include <lockstep/weights.h>

#endif
