import type { AgentRef } from '../../types/agent-ref.js';
import { BadGatewayError, ServiceError } from '../../lib/errors.js';
import { tryParseJson } from '../../lib/json.js';
import type { Files, Memory, WriteOptions } from '../../workspace/workspace.js';
import {
  readAnswer,
  readRefusal,
  type WorkspaceAnswers,
  type WorkspaceCall,
} from '../../workspace/workspace-call.js';
import type { HostAccess } from './host-access.js';

interface Hosts {
  accessTo(id: string): Promise<Pick<HostAccess, 'browse'>>;
}

/** Maximum number of characters of an answer: a diff of characters that JSON escapes with six each. */
const MAX_ANSWER_LENGTH = 16 * 1024 * 1024;

/**
 * An agent's workspace files, on any host. Besides ServiceErrors of files every method throws ConflictError
 * while the memory is replaced, UnavailableError if the host is unreachable or busy, and BadGatewayError
 * after an interruption: the change may have been made.
 */
export class AgentFiles implements Files, Memory {
  readonly #hosts: Hosts;
  readonly #agent: AgentRef;

  constructor(hosts: Hosts, agent: AgentRef) {
    this.#hosts = hosts;
    this.#agent = agent;
  }

  tree(depth: number, signal?: AbortSignal) {
    return this.#request({ what: 'tree', depth }, signal);
  }

  read(path: string) {
    return this.#request({ what: 'read', path });
  }

  write(path: string, content: string, { etag, signal }: WriteOptions = {}) {
    return this.#request(
      { what: 'write', path, content, ...(etag !== undefined && { etag }) },
      signal,
    );
  }

  append(path: string, content: string, { etag, signal }: WriteOptions = {}) {
    return this.#request({ what: 'append', path, content, etag }, signal);
  }

  memoryFiles(signal?: AbortSignal) {
    return this.#request({ what: 'memory' }, signal);
  }

  findInMemory(query: string, signal?: AbortSignal) {
    return this.#request({ what: 'search', query }, signal);
  }

  gitStatus(signal?: AbortSignal) {
    return this.#request({ what: 'status' }, signal);
  }

  gitDiff(path?: string, signal?: AbortSignal) {
    return this.#request({ what: 'diff', path }, signal);
  }

  gitLog(limit: number, signal?: AbortSignal) {
    return this.#request({ what: 'log', limit }, signal);
  }

  gitSync(message?: string, signal?: AbortSignal) {
    return this.#request({ what: 'sync', message }, signal);
  }

  async #request<C extends WorkspaceCall>(
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
    if (refused) {
      const { code, facts, message, status } = refused;
      throw new ServiceError(status, message, code, facts);
    }
    const read = readAnswer<C['what']>(call.what, answer);
    if (read === undefined) throw new BadGatewayError("The agent's host sent an invalid answer");
    return read;
  }
}
