import type { Logger } from 'pino';
import type { AdminRules } from '../../accounts/accounts/admin.js';
import { requirePlan } from '../../types/plans.js';
import type { ProviderName } from '../../ai/completion/provider-names.js';
import type { Models } from '../../ai/models/models.js';
import type { Requester } from '../../platform/audit/requester.js';
import type { Database } from '../../platform/database/database.js';
import type { AgentRow } from '../../platform/database/models.js';
import { UnavailableError } from '../../lib/errors.js';
import type { DockerHosts } from '../hosts/docker-hosts.js';
import type { SecretBox } from '../../platform/secrets/secret-box.js';
import { agentCap } from '../model/agent-cap.js';
import { requireOwnModel } from '../model/agent-model.js';
import { createAgent } from './create-agent.js';
import { requestedModel } from '../model/models.js';
import { supervisedOf, type AgentSupervisors } from '../operations/supervisors.js';

export interface Deployment {
  readonly name: string;
  readonly plan?: string | undefined;
  readonly model?: string | undefined;
  readonly aiProvider?: string | undefined;
  readonly config?: Record<string, unknown> | undefined;
  /** A cap below the plan's own, from a caller with its own limits (spec 8). */
  readonly agentLimit?: number | undefined;
  /** A cap in place of the plan's own; null for none. */
  readonly agentCap?: number | null | undefined;
  /** Tokens of channels, by the names of the credentials that they become. */
  readonly channelTokens?: Readonly<Record<string, string>> | undefined;
}

export interface DeploymentParts {
  readonly database: Database;
  readonly secrets: SecretBox;
  readonly supervisors: AgentSupervisors;
  readonly engines: Pick<DockerHosts, 'unavailableLocalHost'>;
  readonly enabled: boolean;
  readonly aiProvider: ProviderName;
  readonly models: Models;
  readonly accounts: AdminRules;
  readonly log: Logger;
}

export class Deployments {
  readonly #parts: DeploymentParts;

  constructor(parts: DeploymentParts) {
    this.#parts = parts;
  }

  /** Stores a new agent and starts its provisioning, later if Temporal is unavailable. */
  async deploy(
    by: Requester,
    requested: Deployment,
  ): Promise<{ readonly agent: AgentRow; readonly run: string | undefined }> {
    const {
      accounts,
      aiProvider: usualProvider,
      database,
      enabled,
      engines,
      secrets,
    } = this.#parts;
    const models = this.#parts.models.current;
    if (!enabled) throw new UnavailableError('Provisioning is disabled');
    const plan = requirePlan(requested.plan ?? 'label');
    const { model, aiProvider } = requestedModel(requested, usualProvider);
    const config = requested.config ?? {};
    const choice = { model, aiProvider, ownModel: requireOwnModel(model, config) };
    const userId = by.actor;
    const tenant = database.asUser(userId);
    const notOn = await engines.unavailableLocalHost(tenant);
    const { agent, operation } = await createAgent(tenant, secrets, {
      id: by.idempotencyId,
      userId,
      name: requested.name,
      plan,
      model,
      aiProvider,
      config,
      notOn,
      credentials: requested.channelTokens,
      limit: (db) => agentCap(db, userId, accounts, { ...requested, config, choice, models }),
      requestId: by.requestId,
    });
    // A repeated request for an operation that has already begun.
    if (operation.status !== 'requested') return { agent, run: undefined };
    return { agent, run: await this.#provision(agent, operation.id) };
  }

  async #provision(agent: AgentRow, operationId: string): Promise<string | undefined> {
    const { log, supervisors } = this.#parts;
    try {
      return (await supervisors.provision(supervisedOf(agent), operationId)).run;
    } catch (error) {
      if (!(error instanceof UnavailableError)) throw error;
      log.warn({ agentId: agent.id }, 'provisioning is pending until Temporal is reachable');
      return undefined;
    }
  }
}
