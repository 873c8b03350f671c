import * as z from 'zod';
import { isObject } from '../../lib/json.js';
import { visibleName } from '../../lib/visible-name.js';

const MAX_CONFIG_BYTES = 64 * 1024;

export const agentName = visibleName(64);

/** `runtime` is merged into the agent runtime's own configuration file. */
export const agentConfig = z
  .record(z.string(), z.unknown())
  .refine((config) => JSON.stringify(config).length <= MAX_CONFIG_BYTES, {
    error: 'config must be at most 64 KiB',
  })
  .refine((config) => config.runtime === undefined || isObject(config.runtime), {
    error: 'config.runtime must be an object',
  });
