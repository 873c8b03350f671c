import * as z from 'zod';
import { recordHeartbeat } from '../../src/accounts/installations/heartbeat.js';
import { anonymous } from '../auth/anonymous.js';
import { area } from '../http/area.js';
import { reply } from '../http/reply.js';
import type { BackendDependencies } from './dependencies.js';

const health = area({ tag: 'Health', auth: anonymous });

/** Creates `GET /health` and the registration heartbeat (spec 4.11). */
export function healthEndpoints({ settings, database, directory }: BackendDependencies) {
  return [
    health({
      method: 'GET',
      path: '/health',
      operationId: 'getHealth',
      summary: 'Report whether the backend is healthy and reaches a container engine',
      responses: {
        200: z.strictObject({
          status: z.literal('ok'),
          timestamp: z.iso.datetime(),
          docker: z.enum(['available', 'unavailable']),
          provisioning: z.enum(['enabled', 'disabled']),
          disk: z
            .strictObject({
              total: z.number().describe('Bytes'),
              free: z.number().describe('Bytes'),
              low: z
                .boolean()
                .describe('True below AGENT_HOST_DISK_FLOOR: the host gets no new agents'),
            })
            .nullable()
            .describe(
              "Disk of this process's container engine that holds volumes; null if unknown, or without one",
            ),
        }),
      },
      async handler() {
        const { available, disk } = await directory.engineState();
        const enabled = available && settings.agents.provisioningEnabled;
        return reply(200, {
          status: 'ok',
          timestamp: new Date().toISOString(),
          docker: available ? 'available' : 'unavailable',
          provisioning: enabled ? 'enabled' : 'disabled',
          disk,
        });
      },
    }),
    health({
      method: 'POST',
      path: '/api/heartbeat',
      operationId: 'receiveHeartbeat',
      summary: 'Receive the registration heartbeat of an installation',
      body: z.object({ userId: z.string().max(255).optional() }).optional(),
      responses: { 200: z.strictObject({ success: z.literal(true), timestamp: z.iso.datetime() }) },
      async handler({ body }) {
        if (body?.userId !== undefined) await recordHeartbeat(database, body.userId);
        return reply(200, { success: true, timestamp: new Date().toISOString() });
      },
    }),
  ];
}
