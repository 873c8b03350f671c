import type { Providers } from '../../src/ai/completion/provider-names.js';
import { loadCatalogue } from '../../src/ai/models/catalogue-file.js';
import { Models } from '../../src/ai/models/models.js';

/** Returns the shipped models at these providers. */
export const shippedModels = (providers: Providers = {}): Models =>
  new Models({ catalogue: loadCatalogue(), providers });
