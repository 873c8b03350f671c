import type { AgentRef } from '../../types/agent-ref.js';
import { BadGatewayError, ServiceError } from '../../lib/errors.js';
import { tryParseJson } from '../../lib/json.js';
import type { Files } from '../../workspace/workspace.js';
import {
  readAnswer,
  readRefusal,
  type WorkspaceAnswers,
  type WorkspaceCall,
} from '../../workspace/workspace-call.js';
import type { HostAccess } from './host-access.js';

/** The file access to agents' hosts. */
interface Hosts {
  accessTo(id: string): Promise<Pick<HostAccess, 'browse'>>;
}

/**
 * Most characters of an answer. The largest is a diff of characters that JSON escapes with six characters
 * each.
 */
const MAX_ANSWER_LENGTH = 16 * 1024 * 1024;

/**
 * The workspace files of an agent on any host, running or stopped. Every method throws ServiceErrors for
 * refused or missing files, and also
 *
 * - ConflictError (409) while the agent's memory is being created, replaced or removed
 * - UnavailableError (503) if the host is unreachable or too many workspaces are in use
 * - BadGatewayError (502) if the call was interrupted; the change may have been made
 */
export class AgentFiles implements Files {
  readonly #hosts: Hosts;
  readonly #agent: AgentRef;

  constructor(hosts: Hosts, agent: AgentRef) {
    this.#hosts = hosts;
    this.#agent = agent;
  }

  tree(depth: number, signal?: AbortSignal) {
    return this.#ask({ what: 'tree', depth }, signal);
  }

  read(path: string) {
    return this.#ask({ what: 'read', path });
  }

  write(path: string, content: string) {
    return this.#ask({ what: 'write', path, content });
  }

  gitStatus(signal?: AbortSignal) {
    return this.#ask({ what: 'status' }, signal);
  }

  gitDiff(path?: string, signal?: AbortSignal) {
    return this.#ask({ what: 'diff', path }, signal);
  }

  gitLog(limit: number, signal?: AbortSignal) {
    return this.#ask({ what: 'log', limit }, signal);
  }

  gitSync(message?: string, signal?: AbortSignal) {
    return this.#ask({ what: 'sync', message }, signal);
  }

  async #ask<C extends WorkspaceCall>(
    call: C,
    signal = new AbortController().signal,
  ): Promise<WorkspaceAnswers[C['what']]> {
    const host = await this.#hosts.accessTo(this.#agent.host);
    let text = '';
    for await (const piece of host.browse(this.#agent, call, signal)) {
      text += piece;
      if (text.length > MAX_ANSWER_LENGTH) break;
    }
    const answer = tryParseJson(text);
    const refused = readRefusal(answer);
    if (refused) throw new ServiceError(refused.status, refused.message, undefined, refused.facts);
    const read = readAnswer<C['what']>(call.what, answer);
    if (read === undefined) throw new BadGatewayError("The agent's host sent an invalid answer");
    return read;
  }
}
