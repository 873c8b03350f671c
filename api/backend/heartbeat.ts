import { findUser } from '../../src/accounts/users.js';
import { recordAudit } from '../../src/audit/audit.js';
import { NotFoundError } from '../../src/errors.js';
import { setHeartbeat as setUsersHeartbeat } from '../../src/heartbeat/heartbeats.js';
import { presentHeartbeat } from '../views/heartbeat.js';
import { reply } from '../http/reply.js';
import { setHeartbeat } from './contract.js';
import type { BackendDependencies } from './dependencies.js';
import { requestedBy } from './requested-by.js';

/** How often a user's running agents are asked; what the web API's heartbeat stands on. */
export function heartbeatEndpoints({ database, heartbeatSchedules }: BackendDependencies) {
  return [
    setHeartbeat.handledBy(async (request) => {
      const { actor: userId, requestId } = requestedBy(request);
      if (!(await findUser(database, userId))) throw new NotFoundError('User not found');
      const tenant = database.asUser(userId);
      const heartbeat = await setUsersHeartbeat(tenant, heartbeatSchedules, userId, request.body);
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
    }),
  ];
}
