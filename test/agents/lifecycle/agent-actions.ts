import { expect } from 'vitest';
import { until } from '../../support/until.js';
import type { TestPlatform, TestUser } from '../../support/platform.js';

/** Actions of one user on agents of a platform. */
export class AgentActions {
  constructor(
    private readonly platform: TestPlatform,
    private readonly user: TestUser,
  ) {}

  act(id: string, action: string, query = '') {
    return this.platform.backend(this.user, 'POST', `/api/agents/${id}/${action}${query}`);
  }

  async operationsOf(id: string) {
    const { body } = await this.platform.backend(this.user, 'GET', `/api/agents/${id}/operations`);
    return body.operations;
  }

  /** Delays the container's next stop by four seconds, unless it is killed. */
  holdStop(id: string) {
    return this.platform.orderAgent(id, { stopDelayMs: 4_000 });
  }

  /** Deletes the agent and waits until all its resources are removed. */
  async deleteWholly(id: string): Promise<void> {
    const deleted = await this.platform.backend(this.user, 'DELETE', `/api/agents/${id}`);
    expect([deleted.status, deleted.body]).toEqual([200, { id, deleted: true }]);
    const shown = await this.platform.backend(this.user, 'GET', `/api/agents/${id}`);
    expect(shown.status).toBe(404);
    const row = await until(async () => {
      const found = await this.platform.db.asPlatform().transaction((db) => db.Agent.findByPk(id));
      return found?.deletedAt ? found : undefined;
    });
    expect(row.port).toBeNull();
    expect(await this.platform.resourcesOf(id)).toEqual([]);
  }
}
