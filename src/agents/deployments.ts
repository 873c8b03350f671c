import type { Logger } from 'pino';
import { isAdmin, type AdminRules } from '../accounts/admin.js';
import { PLAN_LIMITS, requirePlan } from '../accounts/plans.js';
import { findPlan } from '../accounts/subscriptions.js';
import type { ProviderName } from '../ai/provider-names.js';
import type { Requester } from '../audit/requester.js';
import type { DockerHost } from '../containers/docker-host.js';
import type { Database, TenantTransaction } from '../database/database.js';
import type { AgentRow } from '../database/models.js';
import { BadRequestError, NotFoundError, UnavailableError } from '../errors.js';
import type { SecretBox } from '../secrets/secret-box.js';
import { createAgent } from './create-agent.js';
import { requestedModel } from './models.js';
import { requireDocker } from './require-docker.js';
import { supervisedOf, type AgentSupervisors } from './supervisors.js';

export interface Deployment {
  readonly name: string;
  /** A plan or a tier; `label` when left out. */
  readonly plan?: string | undefined;
  readonly model?: string | undefined;
  readonly aiProvider?: string | undefined;
  readonly config?: Record<string, unknown> | undefined;
  /** A narrower cap than the plan's own, from a caller with a table of its own (spec 8). */
  readonly agentLimit?: number | undefined;
}

export interface DeploymentParts {
  readonly database: Database;
  readonly secrets: SecretBox;
  readonly supervisors: AgentSupervisors;
  readonly docker: Pick<DockerHost, 'available'>;
  /** False where nobody may create agents. */
  readonly enabled: boolean;
  /** Serves the models that nobody serves in particular. */
  readonly aiProvider: ProviderName;
  readonly accounts: AdminRules;
  readonly log: Logger;
}

/** Creates agents. */
export class Deployments {
  readonly #parts: DeploymentParts;

  constructor(parts: DeploymentParts) {
    this.#parts = parts;
  }

  /**
   * Puts a new agent down and starts its provisioning. Answers as soon as its supervisor is started;
   * when Temporal is out that is later, because everything it needs is in the database.
   */
  async deploy(
    by: Requester,
    requested: Deployment,
  ): Promise<{ readonly agent: AgentRow; readonly run: string | undefined }> {
    const { aiProvider: usualProvider, database, docker, enabled, secrets } = this.#parts;
    if (!enabled) throw new UnavailableError('Provisioning is disabled');
    const plan = requirePlan(requested.plan ?? 'label');
    const { model, aiProvider } = requestedModel(requested, usualProvider);
    if (model === 'custom' && typeof requested.config?.model !== 'string') {
      throw new BadRequestError('config.model must name the model when model is custom');
    }
    await requireDocker(docker);

    const userId = by.actor;
    const tenant = database.asUser(userId);
    const { agent, operation } = await createAgent(tenant, secrets, {
      id: by.idempotencyId,
      userId,
      name: requested.name,
      plan,
      model,
      aiProvider,
      config: requested.config ?? {},
      limit: (db) => this.#limitOf(db, userId, requested),
      requestId: by.requestId,
    });
    // Asked for again, when it is under way.
    if (operation.status !== 'requested') return { agent, run: undefined };
    return { agent, run: await this.#provision(agent, operation.id) };
  }

  async #provision(agent: AgentRow, operationId: string): Promise<string | undefined> {
    const { log, supervisors } = this.#parts;
    try {
      return (await supervisors.provision(supervisedOf(agent), operationId)).run;
    } catch (error) {
      if (!(error instanceof UnavailableError)) throw error;
      log.warn({ agentId: agent.id }, 'provisioning waits for Temporal');
      return undefined;
    }
  }

  /** Administrators and the operator have no cap; everybody else that of their plan. */
  async #limitOf(db: TenantTransaction, userId: string, requested: Deployment): Promise<number> {
    const user = await db.User.findByPk(userId);
    if (!user) throw new NotFoundError('User not found');
    if (isAdmin(user, this.#parts.accounts)) return Number.POSITIVE_INFINITY;
    const plan = (await findPlan(db, userId)) ?? 'label';
    return Math.min(PLAN_LIMITS[plan].agents, requested.agentLimit ?? Number.POSITIVE_INFINITY);
  }
}
