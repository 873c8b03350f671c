import { variable } from './area.js';
import { textAs } from './types.js';

/** True if defaults and requirements are those of production. */
export const productionVariable = variable(
  'NODE_ENV',
  textAs('production, or anything else', (text) => text === 'production').prefault('development'),
  '`production`: keys are required, and defaults are strict',
);
