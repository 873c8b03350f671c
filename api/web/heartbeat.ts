import { z } from 'zod';
import { DEFAULT_HEARTBEAT, readHeartbeat } from '../../src/heartbeat/heartbeats.js';
import { session } from '../auth/session.js';
import { endpoint } from '../http/endpoint.js';
import {
  heartbeatChange,
  heartbeatSet,
  heartbeatView,
  presentHeartbeat,
} from '../views/heartbeat.js';
import { reply } from '../http/reply.js';
import type { WebDependencies } from './dependencies.js';

const PATH = '/api/heartbeat';
const TAG = 'Heartbeat';

/** `GET|POST|DELETE /api/heartbeat` (spec 4.11): read here, set by the backend. */
export function heartbeatEndpoints({ backend }: WebDependencies) {
  return [
    endpoint({
      method: 'GET',
      path: PATH,
      summary: 'How often your running agents are asked, and when next',
      tag: TAG,
      auth: session,
      responses: { 200: z.strictObject({ heartbeat: heartbeatView, message: z.string() }) },
      async handler({ caller, tenant }) {
        const heartbeat = presentHeartbeat(await readHeartbeat(tenant, caller.user.id));
        return reply(200, { heartbeat, message: inWords(heartbeat) });
      },
    }),
    endpoint({
      method: 'POST',
      path: PATH,
      summary: 'Set how often your running agents are asked; what is left out stays',
      tag: TAG,
      auth: session,
      body: heartbeatChange,
      responses: { 200: heartbeatSet.extend({ message: z.string() }) },
      errors: [502, 503],
      async handler(request) {
        const set = await backend.call(request, 'PUT', PATH, heartbeatSet, request.body);
        return reply(200, { ...set, message: inWords(set) });
      },
    }),
    endpoint({
      method: 'DELETE',
      path: PATH,
      summary: 'Set your heartbeat back to the default, which is off',
      tag: TAG,
      auth: session,
      responses: { 200: z.strictObject({ success: z.literal(true), message: z.string() }) },
      errors: [502, 503],
      async handler(request) {
        const set = await backend.call(request, 'PUT', PATH, heartbeatSet, DEFAULT_HEARTBEAT);
        return reply(200, { success: true as const, message: inWords(set) });
      },
    }),
  ];
}

function inWords({ enabled, frequency }: { enabled: boolean; frequency: string }): string {
  return enabled ? `Your running agents are asked every ${frequency}` : 'The heartbeat is off';
}
