import { createHash } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import type Docker from 'dockerode';
import { BadGatewayError, ConflictError, UnavailableError } from '../../lib/errors.js';
import { Turns } from '../../lib/turns.js';
import { HELPER_IDLE_MS } from '../../workspace/helper-protocol.js';
import type { WorkspaceCall } from '../../workspace/workspace-call.js';
import type { AgentVolumes } from './agent-volumes.js';
import { AgentNetworks } from './agent-networks.js';
import {
  DockerRefusedError,
  DockerUnavailableError,
  ForeignContainerError,
  MemoryMissingError,
} from './container-errors.js';
import { LABEL, spareNames } from './container-spec.js';
import { createContainer } from './create-container.js';
import type { DockerClient } from './docker-client.js';
import { connectToHelper, helperContainer, type WorkspaceSpec } from './helper-container.js';
import { HelperGoneError, type HelperLine } from './helper-line.js';
import { endHelper, helperLabels } from './helper-leftovers.js';
import { removeContainer, removeLeftovers } from './throw-away.js';

/** Helpers on one host. */
const MAX_HELPERS = 16;

/** Of these, how many one owner may have. */
const ofOneOwner = (most: number): number => Math.ceil(most / 4);

/** Milliseconds that a helper that pushes waits for nothing, once whoever asked has gone. */
const PUSH_IDLE_MS = 1_000;

const NO_NETWORK = 'The agent has no network to push over: it has one as soon as it was started';

/** After so much of a helper's idle time without use a connection ends, before its helper does. */
const UNUSED_SHARE = 0.75;

/** One that has ended is in the way until Docker has removed it; what Docker fails at it mostly fails at again. */
const ATTEMPTS = 200;
const FAILURES = 3;
const ATTEMPT_PAUSE_MS = 100;

/** Milliseconds, longer than Docker mostly takes to find that a program has ended. */
const ENDING_MS = 10_000;

/** Milliseconds, longer than a helper that was made takes to be started. */
const STARTS_WITHIN_MS = 5 * 60_000;

export interface AskOptions {
  readonly signal: AbortSignal;
  /** Throws when the workspace is not to be touched any more. Asked again once a helper is there. */
  readonly still: () => Promise<void>;
}

interface HelperOptions {
  /** What Docker runs helpers by; its default when left out. */
  readonly runtime?: string | undefined;
  /** Milliseconds. */
  readonly idleMs?: number;
  readonly most?: number;
}

interface Opening {
  readonly key: string;
  readonly userId: string;
  readonly opened: Promise<HelperLine>;
  /** Once it is open. */
  line?: HelperLine;
}

/**
 * What reaches the files of agents: a container for each agent on its volume alone, without a network, by
 * the profile of agents. It is started when it is asked for, and ends by itself when nobody has asked for
 * a minute; so it outlives nobody, however they end. It is no container of the agent's by its labels.
 */
export class WorkspaceHelpers {
  /** For whoever asks: who has a turn finds room for a helper, since the others with one have no more. */
  readonly turns: Turns;
  readonly #client: DockerClient;
  readonly #networks: AgentNetworks;
  readonly #volumes: Pick<AgentVolumes, 'find' | 'removeMadeIn'>;
  readonly #options: HelperOptions & { readonly idleMs: number; readonly most: number };
  /** By agent; no more than there may be helpers. */
  readonly #openings = new Map<string, Opening>();
  /** Those whose helpers were ended here, and had the time to give back what they had. */
  readonly #ended = new WeakSet<HelperLine>();

  constructor(
    client: DockerClient,
    volumes: Pick<AgentVolumes, 'find' | 'removeMadeIn'>,
    { runtime, idleMs = HELPER_IDLE_MS, most = MAX_HELPERS }: HelperOptions = {},
  ) {
    this.#client = client;
    this.#networks = new AgentNetworks(client);
    this.#volumes = volumes;
    this.#options = { runtime, idleMs, most };
    this.turns = new Turns(most, ofOneOwner(most));
  }

  /**
   * @param program what runs in the helper.
   * @returns the answer, as JSON that is not looked at here.
   * @throws MemoryMissingError, ImageUnavailableError
   * @throws UnavailableError when there are too many helpers
   * @throws BadGatewayError when the helper ends before it answers: what was asked may be done
   */
  async ask(
    program: string,
    spec: WorkspaceSpec,
    call: WorkspaceCall,
    { signal, still }: AskOptions,
  ): Promise<string> {
    for (let attempt = 1; ; attempt++) {
      const line = await this.#lineOf(program, spec, still);
      try {
        return await line.ask(call, signal);
      } catch (error) {
        if (!(error instanceof HelperGoneError)) throw error;
        await this.#ending(line.container);
        // A commit may be made already, and would be told as none; what ends a new one would end the next.
        if (attempt === 2 || call.what === 'sync' || !line.hasAnswered) {
          if (call.what === 'sync' && !this.#ended.has(line)) {
            await this.#clear(program, spec, { signal, still });
          }
          throw new BadGatewayError('The helper of the workspace ended before it answered', {
            cause: error,
          });
        }
      }
    }
  }

  /**
   * Pushes what a sync has committed, from the agent's own network and by what holds for that. It is done in a helper
   * of its own, which can only read the volume, has neither a name nor an open port, and is gone afterwards. One that
   * is left by a process that was killed ends by itself.
   *
   * @param allow what may be reached although it is not public.
   * @returns the answer, as `ask` does.
   * @throws ConflictError where the agent has no network; as `ask` otherwise
   */
  async push(
    program: string,
    spec: WorkspaceSpec,
    { allow, hash }: { readonly allow: readonly string[]; readonly hash: string },
    { signal, still }: AskOptions,
  ): Promise<string> {
    const found = await this.#networks.find(spec.agentId);
    if (!found) throw new ConflictError(NO_NETWORK);
    const { runtime } = this.#options;
    const pushes = { network: found.Id, allow };
    const id = await createContainer(
      this.#client,
      helperContainer(this.#client, { program, spec, runtime, idleMs: PUSH_IDLE_MS, pushes }),
    );
    let line: HelperLine | undefined;
    try {
      signal.throwIfAborted();
      await this.#start(id, spec, still);
      line = await this.#connect(id);
      return await line.ask({ what: 'push', hash }, signal);
    } finally {
      line?.end();
      await removeContainer(this.#client, id);
    }
  }

  /**
   * Removes the helpers that did not go when they had ended, or were made and never started.
   *
   * @param startsWithinMs one that was made no longer ago may be about to be started by another process.
   */
  async removeDead(startsWithinMs = STARTS_WITHIN_MS): Promise<void> {
    const label = helperLabels(this.#client);
    await removeLeftovers(this.#client, { label, status: ['exited', 'dead'] }, 0);
    await removeLeftovers(this.#client, { label, status: ['created'] }, startsWithinMs);
  }

  /** Removes the helpers that this process works with: whoever else does gets another one. */
  async close(): Promise<void> {
    const all = [...this.#openings];
    await Promise.allSettled(all.map(([agentId, { opened }]) => this.#end(agentId, opened)));
  }

  /** Waits until Docker knows that a helper has ended, so that it is not found once more. It may run, too. */
  async #ending(id: string): Promise<void> {
    await this.#client
      .callUnless(
        [404],
        (docker, bound) => docker.getContainer(id).wait({ condition: 'not-running', ...bound }),
        ENDING_MS,
      )
      .catch((error: unknown) => {
        if (!(error instanceof DockerUnavailableError)) throw error; // the way to it alone is gone
      });
  }

  /** Has another helper take away the locks of one that was killed: the agent's own git is refused by them. */
  async #clear(program: string, spec: WorkspaceSpec, { signal, still }: AskOptions): Promise<void> {
    try {
      const line = await this.#lineOf(program, spec, still);
      await line.ask({ what: 'tree', depth: 1 }, signal); // each begins with that
    } catch {
      // That the sync was broken off is what is told; the next request takes them away.
    }
  }

  async #end(agentId: string, opened: Promise<HelperLine>): Promise<void> {
    this.#openings.delete(agentId);
    const line = await opened;
    this.#ended.add(line);
    try {
      await endHelper(this.#client, line.container);
    } finally {
      line.end();
    }
  }

  #lineOf(program: string, spec: WorkspaceSpec, still: () => Promise<void>): Promise<HelperLine> {
    const { idleMs, runtime } = this.#options;
    const options = helperContainer(this.#client, { program, spec, runtime, idleMs });
    const key = createHash('sha256').update(JSON.stringify(options)).digest('hex');
    const found = this.#openings.get(spec.agentId);
    const isUsable = found?.key === key && found.line?.isOpen !== false;
    if (found && isUsable) return found.opened;
    const opened = this.#open(spec, { ...options.Labels, [LABEL.spec]: key }, options, still);
    const opening: Opening = { key, userId: spec.userId, opened };
    this.#openings.set(spec.agentId, opening);
    const forget = () => {
      if (this.#openings.get(spec.agentId) === opening) this.#openings.delete(spec.agentId);
    };
    opened.then(
      (line) => {
        opening.line = line;
        line.onEnd(forget);
      },
      forget, // whoever waits for it is told
    );
    return opened;
  }

  async #open(
    spec: WorkspaceSpec,
    labels: Record<string, string>,
    options: Docker.ContainerCreateOptions,
    still: () => Promise<void>,
  ): Promise<HelperLine> {
    for (let attempt = 1; ; attempt++) {
      try {
        const id = await this.#container(spec, labels, options);
        await this.#start(id, spec, still);
        return await this.#connect(id);
      } catch (error) {
        // Another process has made one just now, or the one that was there has ended.
        if (!(error instanceof DockerRefusedError)) throw error;
        const isPassing = [404, 409].includes(error.statusCode);
        if (attempt >= (isPassing ? ATTEMPTS : FAILURES)) throw error;
      }
      await delay(ATTEMPT_PAUSE_MS);
    }
  }

  /** The helper that is there, or a new one. */
  async #container(
    spec: WorkspaceSpec,
    labels: Record<string, string>,
    options: Docker.ContainerCreateOptions,
  ): Promise<string> {
    const name = spareNames(spec.agentId).files;
    const found = await this.#client.callUnless([404], (docker, bound) =>
      docker.getContainer(name).inspect(bound),
    );
    const { Labels: there = {} } = found?.Config ?? {};
    if (found) {
      const { installation } = this.#client;
      const isOurs =
        there[LABEL.files] === spec.agentId && there[LABEL.installation] === installation;
      if (!isOurs) throw new ForeignContainerError('container', name);
      // One that was just made is about to be started by whoever made it, or is started by whoever comes.
      const isUsable = found.State.Running || found.State.Status === 'created';
      if (isUsable && there[LABEL.spec] === labels[LABEL.spec]) return found.Id;
      await endHelper(this.#client, found.Id);
    }
    if (!(await this.#volumes.find(spec))) throw new MemoryMissingError(spec.volume);
    await this.#makeRoom(spec);
    return createContainer(this.#client, { name, ...options, Labels: labels });
  }

  /** Starts one that was made, unless its memory is not there or not to be touched any more: then it goes. */
  async #start(id: string, spec: WorkspaceSpec, still: () => Promise<void>): Promise<void> {
    const { agentId, volume } = spec;
    if (!(await this.#volumes.find({ agentId, volume }))) {
      await endHelper(this.#client, id);
      // Docker has made it anew, empty.
      await this.#volumes.removeMadeIn({ agentId, volume }, () => false);
      throw new MemoryMissingError(volume);
    }
    await still().catch(async (error: unknown) => {
      await endHelper(this.#client, id);
      throw error;
    });
    await this.#client.callUnless([304], (docker, bound) => docker.getContainer(id).start(bound));
  }

  #connect(id: string): Promise<HelperLine> {
    return connectToHelper(this.#client, id, this.#options.idleMs * UNUSED_SHARE);
  }

  /** Ends what has not been used for longest, where there are too many. @throws UnavailableError */
  async #makeRoom({ agentId, userId }: WorkspaceSpec): Promise<void> {
    // Those that run: what was made and never started is in nobody's way, and goes by itself.
    const filters = { label: helperLabels(this.#client) };
    const all = await this.#client.call((docker, bound) =>
      docker.listContainers({ filters, ...bound }),
    );
    const there = all.filter(({ Labels: labels }) => labels[LABEL.pushes] === undefined);
    const others = [...this.#openings].filter(([id]) => id !== agentId);
    const isOwners = (owner: string | undefined) => owner === userId;
    const ofOwner = Math.max(
      there.filter(({ Labels: labels }) => isOwners(labels[LABEL.owner])).length,
      others.filter(([, each]) => isOwners(each.userId)).length,
    );
    const { most } = this.#options;
    const isOwnerFull = ofOwner >= ofOneOwner(most);
    if (!isOwnerFull && Math.max(there.length, others.length) < most) return;
    const idle = others
      .filter(([, each]) => !isOwnerFull || isOwners(each.userId))
      .filter(([, { line }]) => line?.isIdle === true)
      .sort(([, a], [, b]) => (a.line?.usedAt ?? 0) - (b.line?.usedAt ?? 0));
    const [longest] = idle;
    if (!longest) {
      throw new UnavailableError('Too many workspaces are in use: come again in a minute');
    }
    await this.#end(longest[0], longest[1].opened);
  }
}
