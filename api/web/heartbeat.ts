import * as z from 'zod';
import { DEFAULT_HEARTBEAT, readHeartbeat } from '../../src/agents/heartbeat/heartbeats.js';
import { person } from '../auth/person.js';
import { setHeartbeat } from '../backend/contract.js';
import { area } from '../http/area.js';
import {
  heartbeatChange,
  heartbeatSet,
  heartbeatView,
  presentHeartbeat,
} from '../views/heartbeat.js';
import { errorsOf } from '../http/derived-errors.js';
import { reply } from '../http/reply.js';
import type { WebDependencies } from './dependencies.js';

const PATH = '/api/heartbeat';
const heartbeats = area({ tag: 'Heartbeat', auth: person, keyScope: 'agents' });

/** Creates `GET|POST|DELETE /api/heartbeat` (spec 4.11): read here, set by the backend. */
export function heartbeatEndpoints({ backend }: WebDependencies) {
  return [
    heartbeats({
      method: 'GET',
      path: PATH,
      operationId: 'getHeartbeat',
      summary: "Get the interval of your running agents' heartbeats, and the next time",
      responses: { 200: z.strictObject({ heartbeat: heartbeatView, message: z.string() }) },
      async handler({ caller, tenant }) {
        const heartbeat = presentHeartbeat(await readHeartbeat(tenant, caller.user.id));
        return reply(200, { heartbeat, message: inWords(heartbeat) });
      },
    }),
    heartbeats({
      method: 'POST',
      path: PATH,
      operationId: 'setHeartbeat',
      summary: "Set the interval of your running agents' heartbeats; omitted fields stay unchanged",
      body: heartbeatChange,
      responses: { 200: heartbeatSet.extend({ message: z.string() }) },
      errors: errorsOf(setHeartbeat),
      async handler(request) {
        const set = await backend.call(request, setHeartbeat, request);
        return reply(200, { ...set, message: inWords(set) });
      },
    }),
    heartbeats({
      method: 'DELETE',
      path: PATH,
      operationId: 'resetHeartbeat',
      summary: 'Reset your heartbeat to the default (off)',
      responses: { 200: z.strictObject({ success: z.literal(true), message: z.string() }) },
      errors: errorsOf(setHeartbeat),
      async handler(request) {
        const set = await backend.call(request, setHeartbeat, { body: DEFAULT_HEARTBEAT });
        return reply(200, { success: true, message: inWords(set) });
      },
    }),
  ];
}

function inWords({ enabled, frequency }: { enabled: boolean; frequency: string }): string {
  return enabled
    ? `Your running agents get a heartbeat every ${frequency}`
    : 'The heartbeat is off';
}
