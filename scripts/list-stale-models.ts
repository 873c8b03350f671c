import { CATALOGUE } from '../src/ai/routing/catalogue-data.js';
import { STALE_AFTER_DAYS, staleModels } from './stale-models.js';

const stale = staleModels(Date.now());
for (const { model, days } of stale) {
  console.log(`${model.family}: as of ${model.asOf} (${days} days ago), from ${model.source}`);
}
console.log(
  `${stale.length} of ${CATALOGUE.length} models in src/ai/routing/catalogue-data.ts were looked up more ` +
    `than ${STALE_AFTER_DAYS} days ago`,
);
