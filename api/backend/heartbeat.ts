import { presentHeartbeat } from '../views/heartbeat.js';
import { reply } from '../http/reply.js';
import { setHeartbeat } from './contract.js';
import type { BackendDependencies } from './dependencies.js';
import { requestedBy } from './requested-by.js';

/** Creates the endpoints for a user's heartbeat; the web API's heartbeat endpoints call them. */
export function heartbeatEndpoints({ heartbeats }: Pick<BackendDependencies, 'heartbeats'>) {
  return [
    setHeartbeat.handledBy(async (request) => {
      const heartbeat = await heartbeats.set(requestedBy(request), request.body);
      const lastUpdated = (heartbeat.updatedAt ?? new Date()).toISOString();
      return reply(200, { ...presentHeartbeat(heartbeat), lastUpdated });
    }),
  ];
}
