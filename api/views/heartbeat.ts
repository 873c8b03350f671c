import * as z from 'zod';
import { FREQUENCY_FORMAT, isFrequency } from '../../src/agents/heartbeat/frequency.js';
import { nextHeartbeat, type Heartbeat } from '../../src/agents/heartbeat/heartbeats.js';

export const heartbeatChange = z
  .object({
    frequency: z
      .string()
      .refine(isFrequency, { error: `frequency must be ${FREQUENCY_FORMAT}` })
      .optional(),
    enabled: z.boolean().optional(),
  })
  .meta({ id: 'HeartbeatChange' });

const time = z.iso.datetime().nullable();

export const heartbeatView = z
  .strictObject({
    frequency: z.string(),
    enabled: z.boolean(),
    lastHeartbeat: time,
    nextHeartbeat: time,
  })
  .meta({ id: 'Heartbeat' });

export const heartbeatSet = heartbeatView.extend({ lastUpdated: z.iso.datetime() });

export function presentHeartbeat(heartbeat: Heartbeat): z.infer<typeof heartbeatView> {
  const { enabled, frequency, lastHeartbeatAt } = heartbeat;
  return {
    frequency,
    enabled,
    lastHeartbeat: lastHeartbeatAt?.toISOString() ?? null,
    nextHeartbeat: nextHeartbeat(heartbeat)?.toISOString() ?? null,
  };
}
