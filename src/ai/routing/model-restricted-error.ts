import type { Plan } from '../../types/plans.js';
import { ServiceError } from '../../lib/errors.js';
import type { ModelSet } from '../models/model-set.js';

/** 403; `allowedModels` lists the models that the plan includes. */
export class ModelRestrictedError extends ServiceError {
  override readonly name = 'ModelRestrictedError';

  constructor(model: string, plan: Plan, models: ModelSet) {
    super(403, `Model ${model} is not part of the plan "${plan}"`, 'MODEL_RESTRICTED', {
      allowedModels: models.allowedIds(plan),
    });
  }
}
