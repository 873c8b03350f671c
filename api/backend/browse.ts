import { isAdminEmail } from '../../src/accounts/accounts/admin.js';
import { isAdminById } from '../../src/accounts/accounts/users.js';
import { getAgent } from '../../src/agents/agents/agents.js';
import type { TenantDatabase } from '../../src/platform/database/database.js';
import { BadRequestError } from '../../src/lib/errors.js';
import type { Files } from '../../src/workspace/workspace.js';
import type { ApiKeyCaller } from '../auth/api-key.js';
import type { InternalCaller } from '../auth/internal-key.js';
import { reply } from '../http/reply.js';
import {
  browseGitDiff,
  browseGitLog,
  browseGitStatus,
  browseGitSync,
  browseRead,
  browseTree,
  browseWrite,
} from './browse-contract.js';
import type { BackendDependencies } from './dependencies.js';

interface BrowseRequest {
  readonly caller: InternalCaller | ApiKeyCaller;
  readonly tenant: TenantDatabase;
}

/** Creates the `/api/browse/*` endpoints (spec 4.14). */
export function browseEndpoints({ database, directory, settings, workspace }: BackendDependencies) {
  const isOperator = async (caller: BrowseRequest['caller']) => {
    // An API key speaks for a user, so it only opens the workspaces of that user's agents.
    if (caller.kind === 'api-key') return false;
    if (caller.user) return isAdminById(database, caller.user.id, settings.accounts);
    return caller.email === undefined || isAdminEmail(caller.email, settings.accounts);
  };

  /**
   * Returns the workspace of the agent, or the operators' folder without an agent.
   * @throws BadRequestError, NotFoundError
   */
  const workspaceOf = async (
    request: BrowseRequest,
    agentId: string | undefined,
  ): Promise<Files> => {
    if (agentId !== undefined) {
      const { host, userId } = await getAgent(request.tenant, agentId);
      return directory.filesOf({ agentId, userId, host });
    }
    if (!(await isOperator(request.caller))) throw new BadRequestError('agentId required');
    return workspace;
  };

  return [
    browseTree.handledBy(async (request) => {
      const { agentId, depth } = request.query;
      const of = await workspaceOf(request, agentId);
      return reply(200, { ok: true, root: await of.tree(depth, request.signal) });
    }),
    browseRead.handledBy(async (request) => {
      const { agentId, path } = request.query;
      const of = await workspaceOf(request, agentId);
      return reply(200, { ok: true, ...(await of.read(path)) });
    }),
    browseWrite.handledBy(async (request) => {
      const { agentId, content, path } = request.body;
      const of = await workspaceOf(request, agentId);
      const written = await of.write(path, content);
      return reply(200, { ok: true, path, size: written.size });
    }),
    browseGitStatus.handledBy(async (request) => {
      const of = await workspaceOf(request, request.query.agentId);
      return reply(200, { ok: true, ...(await of.gitStatus(request.signal)) });
    }),
    browseGitDiff.handledBy(async (request) => {
      const { agentId, path } = request.query;
      const of = await workspaceOf(request, agentId);
      return reply(200, { ok: true, ...(await of.gitDiff(path, request.signal)) });
    }),
    browseGitLog.handledBy(async (request) => {
      const { agentId, limit } = request.query;
      const of = await workspaceOf(request, agentId);
      return reply(200, { ok: true, commits: await of.gitLog(limit, request.signal) });
    }),
    browseGitSync.handledBy(async (request) => {
      const { agentId, message } = request.body;
      const of = await workspaceOf(request, agentId);
      return reply(200, { ok: true, ...(await of.gitSync(message, request.signal)) });
    }),
  ];
}
