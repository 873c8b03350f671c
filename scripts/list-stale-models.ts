import { loadCatalogue, SHIPPED_FILE } from '../src/ai/models/catalogue-file.js';
import { STALE_AFTER_DAYS, staleModels } from './stale-models.js';

const file = process.env.AI_MODELS_FILE?.trim() || undefined;
const { models } = loadCatalogue(file);
const stale = staleModels(Date.now(), models);
for (const { model, days } of stale) {
  console.log(`${model.family}: as of ${model.asOf} (${days} days ago), from ${model.source}`);
}
console.log(
  `${stale.length} of ${models.length} models in ${file ?? SHIPPED_FILE} were looked up more than ` +
    `${STALE_AFTER_DAYS} days ago`,
);
