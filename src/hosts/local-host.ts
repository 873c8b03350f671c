import type { AgentRef } from '../agents/agent-ref.js';
import { readGatewayToken } from '../agents/agent-secrets.js';
import { findAgent } from '../agents/agents.js';
import { askGateway } from '../chat/gateway.js';
import { ContainerMissingError } from '../containers/container-errors.js';
import type { LogLine, LogOptions } from '../containers/container-logs.js';
import type { ContainerStats } from '../containers/container-view.js';
import type { DockerHost } from '../containers/docker-host.js';
import type { Database } from '../database/database.js';
import { ConflictError } from '../errors.js';
import type { SecretBox } from '../secrets/secret-box.js';
import type { HostAccess, Instance, Instances, Question } from './host-access.js';

/** Containers that one call measures: each takes Docker a reading of its own. */
const MAX_MEASURED = 100;

interface LocalHostParts {
  readonly id: string;
  readonly database: Database;
  readonly docker: Pick<DockerHost, 'containers'>;
  readonly secrets: SecretBox;
}

/** The agents on the Docker host that this process stands beside. */
export class LocalHost implements HostAccess {
  readonly #parts: LocalHostParts;

  constructor(parts: LocalHostParts) {
    this.#parts = parts;
  }

  async *ask(
    { agentId, userId }: AgentRef,
    question: Question,
    signal: AbortSignal,
  ): AsyncGenerator<string> {
    const { database, id, secrets } = this.#parts;
    const tenant = database.asUser(userId);
    const agent = await findAgent(tenant, agentId);
    // On another host the same port is somebody else's agent, who must see neither the message nor
    // the token.
    if (agent?.host !== id || agent.status !== 'active' || agent.port === null) {
      throw new ConflictError('The agent is not running');
    }
    const gateway = { port: agent.port, token: await readGatewayToken(tenant, secrets, agentId) };
    yield* askGateway(gateway, question, signal);
  }

  logs(agentId: string, options?: LogOptions): AsyncGenerator<LogLine> {
    return this.#parts.docker.containers.logs(agentId, options);
  }

  async stats(agentId: string): Promise<ContainerStats | null> {
    const { containers } = this.#parts.docker;
    const state = await containers.inspect(agentId);
    if (state?.status !== 'running') return null;
    try {
      return await containers.stats(agentId);
    } catch (error) {
      // It ended in between.
      if (error instanceof ContainerMissingError) return null;
      throw error;
    }
  }

  async instances({ stats, userId }: Instances): Promise<Instance[]> {
    const all = (await this.#parts.docker.containers.list()).filter(
      (each) => userId === undefined || each.userId === userId,
    );
    const running = stats ? all.filter(({ status }) => status === 'running') : [];
    const measured = new Map(
      await Promise.all(
        running
          .slice(0, MAX_MEASURED)
          .map(async ({ agentId }) => [agentId, await this.stats(agentId)] as const),
      ),
    );
    return all.map((each) => ({ ...each, stats: measured.get(each.agentId) ?? null }));
  }
}
