import * as z from 'zod';
import { hostHealth } from '../../src/platform/health/host-health.js';
import { anonymous } from '../auth/anonymous.js';
import { endpoint } from '../http/endpoint.js';
import { reply } from '../http/reply.js';

const bytes = z.number().describe('Bytes');

/** Creates `GET /api/health` (spec 4.11). */
export function healthEndpoints() {
  return [
    endpoint({
      method: 'GET',
      path: '/api/health',
      operationId: 'getMachineHealth',
      summary: 'Report the load of the machine',
      tag: 'Health',
      auth: anonymous,
      responses: {
        200: z.strictObject({
          status: z.literal('ok'),
          health: z.enum(['healthy', 'degraded', 'unhealthy']),
          timestamp: z.iso.datetime(),
          cpu: z.strictObject({ usage: z.number().describe('Percent'), cores: z.int() }),
          memory: z.strictObject({
            usage: z.number().describe('Percent'),
            total: bytes,
            used: bytes,
            free: bytes,
          }),
          uptime: z.number().describe('Seconds'),
        }),
        500: z.strictObject({
          status: z.literal('error'),
          health: z.literal('unhealthy'),
          timestamp: z.iso.datetime(),
        }),
      },
      async handler() {
        const timestamp = new Date().toISOString();
        const measured = await hostHealth();
        if (!measured) {
          return reply(500, { status: 'error', health: 'unhealthy', timestamp });
        }
        return reply(200, { status: 'ok', timestamp, ...measured });
      },
    }),
  ];
}
