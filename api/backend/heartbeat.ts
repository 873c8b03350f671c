import { findUser } from '../../src/accounts/users.js';
import { recordAudit } from '../../src/audit/audit.js';
import { NotFoundError } from '../../src/errors.js';
import { setHeartbeat } from '../../src/heartbeat/heartbeats.js';
import { internalKey } from '../auth/internal-key.js';
import { endpoint } from '../http/endpoint.js';
import { heartbeatChange, heartbeatSet, presentHeartbeat } from '../views/heartbeat.js';
import { reply } from '../http/reply.js';
import type { BackendDependencies } from './dependencies.js';
import { requestedBy } from './requested-by.js';

/** How often a user's running agents are asked; what the web API's heartbeat stands on. */
export function heartbeatEndpoints({ database, heartbeatSchedules }: BackendDependencies) {
  return [
    endpoint({
      method: 'PUT',
      path: '/api/heartbeat',
      summary: "Set how often a user's running agents are asked; what is left out stays",
      tag: 'Health',
      auth: internalKey,
      body: heartbeatChange,
      responses: { 200: heartbeatSet },
      errors: [404, 503],
      async handler(request) {
        const { actor: userId, requestId } = requestedBy(request);
        if (!(await findUser(database, userId))) throw new NotFoundError('User not found');
        const tenant = database.asUser(userId);
        const heartbeat = await setHeartbeat(tenant, heartbeatSchedules, userId, request.body);
        const { enabled, frequency, updatedAt } = heartbeat;
        await recordAudit(tenant, {
          actor: userId,
          userId,
          action: 'heartbeat.set',
          subject: userId,
          detail: { enabled, frequency },
          requestId,
        });
        const lastUpdated = (updatedAt ?? new Date()).toISOString();
        return reply(200, { ...presentHeartbeat(heartbeat), lastUpdated });
      },
    }),
  ];
}
