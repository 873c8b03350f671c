import { z } from 'zod';
import { isAdmin } from '../../src/accounts/admin.js';
import { PLANS, PLAN_LIMITS, isPlan, parsePlan } from '../../src/accounts/plans.js';
import { grantPlan, planOf } from '../../src/accounts/subscriptions.js';
import { findUser } from '../../src/accounts/users.js';
import { createAgent } from '../../src/agents/create-agent.js';
import { requestedModel } from '../../src/agents/models.js';
import { recordAudit } from '../../src/audit/audit.js';
import type { TenantDatabase } from '../../src/database/database.js';
import type { AgentRow } from '../../src/database/models.js';
import { BadRequestError, NotFoundError, UnavailableError } from '../../src/errors.js';
import { internalKey } from '../auth/internal-key.js';
import { endpoint } from '../http/endpoint.js';
import { reply } from '../http/reply.js';
import { supervisedOf } from '../../src/agents/supervisors.js';
import { agentCreated, presentCreated } from '../views/backend-agents.js';
import type { BackendDependencies } from './dependencies.js';
import { requireContainers, runHeader, type OperationContext } from './operations.js';
import { actorOf, ownerOf } from './requested-by.js';

const MAX_CONFIG_BYTES = 64 * 1024;

export const agentName = z.string().trim().min(1).max(64);

/** An agent's configuration. `runtime` goes into the agent runtime's own configuration file. */
export const agentConfig = z
  .record(z.string(), z.unknown())
  .refine((config) => JSON.stringify(config).length <= MAX_CONFIG_BYTES, {
    error: 'config must be at most 64 KiB',
  })
  .refine((config) => config.runtime === undefined || isPlainObject(config.runtime), {
    error: 'config.runtime must be an object',
  });

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

/**
 * Puts a new agent down and starts its provisioning. Answers as soon as the workflow is started;
 * when Temporal is out it starts later, because everything it needs is in the database.
 */
export async function deploy(
  dependencies: BackendDependencies,
  context: OperationContext,
  requested: Deployment,
): Promise<{ agent: AgentRow; run: string | undefined }> {
  const { settings, database, log, secrets, supervisors } = dependencies;
  if (!settings.agents.provisioningEnabled) throw new UnavailableError('Provisioning is disabled');
  const plan = requested.plan === undefined ? undefined : parsePlan(requested.plan);
  if (requested.plan !== undefined && !plan) {
    throw new BadRequestError(`plan must be one of ${PLANS.join(', ')}`);
  }
  const { model, aiProvider } = requestedModel(requested, settings.ai.provider);
  if (model === 'custom' && typeof requested.config?.model !== 'string') {
    throw new BadRequestError('config.model must name the model when model is custom');
  }
  await requireContainers(dependencies);

  const userId = ownerOf(context.caller);
  const tenant: TenantDatabase = database.asUser(userId);
  const { agent, operation } = await createAgent(tenant, secrets, {
    id: context.idempotencyId,
    userId,
    name: requested.name,
    plan: plan ?? 'label',
    model,
    aiProvider,
    config: requested.config ?? {},
    limit: await limitOf(dependencies, userId, requested),
  });
  await recordAudit(tenant, {
    actor: actorOf(context.caller),
    userId,
    action: 'agent.create',
    subject: agent.id,
    detail: { name: agent.name, plan: agent.plan },
    requestId: context.requestId,
  });
  try {
    const { run } = await supervisors.provision(supervisedOf(agent), operation.id);
    return { agent, run };
  } catch (error) {
    if (!(error instanceof UnavailableError)) throw error;
    log.warn({ agentId: agent.id }, 'provisioning waits for Temporal');
    return { agent, run: undefined };
  }
}

/** Administrators and the operator have no cap; everybody else that of their plan. */
async function limitOf(
  { settings, database }: BackendDependencies,
  userId: string,
  requested: Deployment,
): Promise<number> {
  const user = await findUser(database, userId);
  if (!user) throw new NotFoundError('User not found');
  if (isAdmin(user, settings.accounts)) return Number.POSITIVE_INFINITY;
  const plan = (await planOf(database, userId)) ?? 'label';
  return Math.min(PLAN_LIMITS[plan].agents, requested.agentLimit ?? Number.POSITIVE_INFINITY);
}

export function deploymentEndpoints(dependencies: BackendDependencies) {
  return [
    endpoint({
      method: 'POST',
      path: '/api/deployments',
      summary: 'Deploy an agent container',
      tag: 'Deployments',
      auth: internalKey,
      idempotent: true,
      body: z.object({
        name: agentName,
        plan: z.string().optional(),
        model: z.string().optional(),
        aiProvider: z.string().optional(),
        config: agentConfig.optional(),
        agentLimit: z.number().int().min(0).optional(),
      }),
      responses: { 201: agentCreated },
      errors: [402, 404, 409, 503],
      async handler(request) {
        const { agent, run } = await deploy(dependencies, request, request.body);
        return reply(201, presentCreated(agent, dependencies.settings.agents), runHeader(run));
      },
    }),
    endpoint({
      method: 'POST',
      path: '/api/subscriptions/deploy',
      summary: 'Grant a user a plan',
      tag: 'Deployments',
      auth: internalKey,
      idempotent: true,
      body: z.object({ userId: z.string().min(1).max(64), plan: z.string() }),
      responses: {
        200: z.strictObject({
          success: z.literal(true),
          userId: z.string(),
          plan: z.enum(PLANS),
          status: z.literal('active'),
        }),
      },
      errors: [404],
      async handler({ body, caller, requestId }) {
        if (!isPlan(body.plan))
          throw new BadRequestError(`plan must be one of ${PLANS.join(', ')}`);
        // Who speaks for one user reaches nobody else's plan.
        if (caller.user && caller.user.id !== body.userId) {
          throw new NotFoundError('User not found');
        }
        const { database } = dependencies;
        await grantPlan(database, body.userId, body.plan, 'operator');
        await recordAudit(database.asUser(body.userId), {
          actor: actorOf(caller),
          userId: body.userId,
          action: 'subscription.grant',
          subject: body.userId,
          detail: { plan: body.plan },
          requestId,
        });
        return reply(200, {
          success: true as const,
          userId: body.userId,
          plan: body.plan,
          status: 'active' as const,
        });
      },
    }),
  ];
}

function isPlainObject(value: unknown): boolean {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
