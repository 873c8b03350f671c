import * as z from 'zod';
import { findEntitlement } from '../../src/accounts/accounts/entitlement.js';
import { getAgent } from '../../src/agents/agents/agents.js';
import { skillsIn } from '../../src/agents/model/agent-skills.js';
import { installedSkills, requireInstalled } from '../../src/agents/skills/installed-skills.js';
import type { TenantDatabase } from '../../src/platform/database/database.js';
import { countUse, getSkill, listSkills, publishSkill } from '../../src/skills/skills.js';
import { PLAN_LIMITS } from '../../src/types/plans.js';
import { person } from '../auth/person.js';
import { installSkill, removeSkill } from '../backend/contract.js';
import { area } from '../http/area.js';
import { errorsOf } from '../http/derived-errors.js';
import { nextPageLink, page } from '../http/pagination.js';
import { reply } from '../http/reply.js';
import { operationAnswer, waitQuery } from '../views/operations.js';
import {
  MAX_TAG,
  presentSkill,
  presentWhole,
  publishedName,
  skillItem,
  skillPublication,
  wholeSkill,
  type SkillState,
} from '../views/skills.js';
import { answerChat, chatAnswer, chatQuestion } from './chat-answer.js';
import type { WebDependencies } from './dependencies.js';
import { LIMITS } from './limits.js';

const PATH = '/api/skills';

const ACTIONS = ['use', 'install', 'remove'] as const;

const skills = area({
  tag: 'Skills',
  auth: person,
  keyScope: 'agents',
  limit: LIMITS.skills,
  limitOfCaller: LIMITS.skillsOfUser,
});

const { agentId, conversation, message, stream } = chatQuestion;

const list = z.strictObject({
  skills: z.array(skillItem),
  count: z.int(),
  used: z.int().optional().describe('Enabled skills of the agent'),
  limit: z
    .int()
    .nullable()
    .optional()
    .describe('Maximum number of enabled skills; null without a limit'),
});

/** Creates `GET|POST /api/skills` and `POST /api/skills/:name` (spec 4.15). */
export function skillEndpoints(dependencies: WebDependencies) {
  const { backend, database, settings } = dependencies;

  return [
    skills({
      method: 'GET',
      path: PATH,
      operationId: 'listSkills',
      summary: 'List your skills and public ones, newest first, or get one with its text',
      query: z.object({
        ...page,
        name: publishedName.optional().describe('The skill to get'),
        q: z
          .string()
          .trim()
          .min(1)
          .max(200)
          .optional()
          .describe('Only skills with this text in name or description'),
        tag: z.string().trim().min(1).max(MAX_TAG).optional().describe('Only skills with this tag'),
        mine: z.enum(['true', 'false']).default('false').describe('Only your own skills'),
        agentId: agentId.optional().describe('Your agent: adds its installed skills to the answer'),
      }),
      responses: { 200: z.union([list, z.strictObject({ skill: wholeSkill })]) },
      errors: [404],
      async handler({ query, tenant }) {
        const has = query.agentId === undefined ? undefined : await skillsOf(tenant, query.agentId);
        if (query.name !== undefined) {
          const found = await getSkill(tenant, query.name);
          return reply(200, { skill: presentWhole(found, has?.stateOf(found)) });
        }
        const { cursor: before, limit, q, tag } = query;
        const mine = query.mine === 'true';
        const found = await listSkills(tenant, { q, tag, mine, limit, before });
        const shown = found.slice(0, limit);
        const last = found.length > limit ? shown.at(-1) : undefined;
        return reply(
          200,
          {
            skills: shown.map((each) => presentSkill(each, has?.stateOf(each))),
            count: shown.length,
            ...(has && { used: has.used, limit: has.limit }),
          },
          nextPageLink(PATH, query, last && [last.createdAt.toISOString(), last.id]),
        );
      },
    }),
    skills({
      method: 'POST',
      path: PATH,
      operationId: 'publishSkill',
      summary: 'Publish a skill or its next version; omitted fields stay as they were',
      idempotent: true,
      body: skillPublication,
      responses: { 201: z.strictObject({ skill: wholeSkill }) },
      errors: [404, 409],
      async handler({ body, caller, idempotencyId, requestId, tenant }) {
        const { id: actor, isAdmin } = caller.user;
        const by = { actor, idempotencyId, isAdmin, requestId, tenant };
        return reply(201, { skill: presentWhole(await publishSkill(database, by, body)) });
      },
    }),
    skills({
      method: 'POST',
      path: `${PATH}/:name`,
      operationId: 'useSkill',
      summary: 'Use a skill in a chat with your agent, or install or remove the skill',
      idempotent: true,
      headers: z.object({ accept: z.string().optional() }),
      params: z.object({ name: publishedName.describe('The skill') }),
      query: waitQuery,
      body: z.object({
        agentId,
        action: z.enum(ACTIONS).default('use'),
        input: message.optional().describe('Your message to the skill'),
        conversation,
        stream,
      }),
      responses: { 200: [chatAnswer, 'stream'], 202: operationAnswer },
      errors: [...errorsOf(installSkill, removeSkill), 402, 404, 409, 502, 503],
      async handler(request) {
        const { body, params, query, tenant } = request;
        const { action, input, ...requested } = body;
        const agent = await getAgent(tenant, body.agentId);
        if (action !== 'use') {
          const declared = action === 'install' ? installSkill : removeSkill;
          const sent = { params: { id: agent.id, skill: params.name }, query };
          return reply(202, await backend.call(request, declared, sent));
        }
        const { skillId } = await requireInstalled(tenant, agent, params.name);
        const text = input === undefined ? `$${params.name}` : `$${params.name} ${input}`;
        const { caller, headers, idempotencyId, isAnswered, signal } = request;
        const counted = {
          ...{ caller, headers, idempotencyId, isAnswered, signal, tenant },
          // Called once the answer is stored; a repetition of the request counts no second use.
          markAnswered: async () => {
            if (!isAnswered && skillId !== null) await countUse(database, skillId);
            await request.markAnswered?.();
          },
        };
        return answerChat(dependencies, counted, { ...requested, message: text });
      },
    }),
  ];

  /** Returns what an agent has installed and enabled. @throws NotFoundError */
  async function skillsOf(tenant: TenantDatabase, id: string) {
    const agent = await getAgent(tenant, id);
    const [installed, entitlement] = await Promise.all([
      installedSkills(tenant, agent.id),
      findEntitlement(tenant, agent.userId, settings.accounts),
    ]);
    const enabled = new Set(
      skillsIn(agent.config).flatMap((each) => (each.enabled ? [each.name] : [])),
    );
    const isLimited = entitlement && !entitlement.isAdmin;
    return {
      used: enabled.size,
      limit: isLimited ? PLAN_LIMITS[entitlement.plan].skills : null,
      stateOf(skill: { readonly id: string; readonly name: string }): SkillState {
        const there = installed.find(({ skillId }) => skillId === skill.id);
        return {
          installed: there !== undefined,
          installedVersion: there?.version ?? null,
          enabled: there !== undefined && enabled.has(skill.name),
        };
      },
    };
  }
}
