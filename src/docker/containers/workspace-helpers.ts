import { createHash } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import type Docker from 'dockerode';
import { BadGatewayError, ConflictError, UnavailableError } from '../../lib/errors.js';
import { FairLimiter } from '../../lib/fair-limiter.js';
import { HELPER_IDLE_MS, type RemoveSkillsCall } from '../../workspace/helper-protocol.js';
import { isRepeatable, type WorkspaceCall } from '../../workspace/workspace-call.js';
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

const MAX_HELPERS = 16;

const ofOneOwner = (most: number): number => Math.ceil(most / 4);

/** Milliseconds for which a pushing helper stays idle after its caller has disconnected. */
const PUSH_IDLE_MS = 1_000;

const NO_NETWORK = 'The agent has no network to push over: start the agent once, then retry';

/** Fraction of a helper's idle time after which an unused connection closes, before the helper ends. */
const UNUSED_SHARE = 0.75;

/** Attempts while an ended helper occupies its name, and after a Docker error, which mostly repeats. */
const ATTEMPTS = 200;
const FAILURES = 3;
const ATTEMPT_PAUSE_MS = 100;

/** Milliseconds, longer than Docker usually takes to notice that a program has ended. */
const ENDING_MS = 10_000;

/** Milliseconds, longer than a created helper takes to be started. */
const STARTS_WITHIN_MS = 5 * 60_000;

export interface RequestOptions {
  readonly signal: AbortSignal;
  /** A check that throws if the workspace must no longer be touched; repeated once a helper exists. */
  readonly still: () => Promise<void>;
}

interface HelperOptions {
  readonly runtime?: string | undefined;
  /** Milliseconds without requests until a helper ends. */
  readonly idleMs?: number;
  readonly most?: number;
}

interface Opening {
  readonly key: string;
  readonly userId: string;
  readonly opened: Promise<HelperLine>;
  /** Undefined until the connection is open. */
  line?: HelperLine;
}

const mayRepeat = (call: WorkspaceCall | RemoveSkillsCall): boolean =>
  call.what === 'remove-skills' || isRepeatable(call);

/**
 * Access to agents' files: for each agent a container with only its volume, without a network. It starts on
 * demand and ends by itself after an idle minute, so it never outlives its users. Its labels do not mark it
 * as the agent's own.
 */
export class WorkspaceHelpers {
  /** A caller with a turn finds room for a helper, since all others hold at most one each. */
  readonly limiter: FairLimiter;
  readonly #client: DockerClient;
  readonly #networks: AgentNetworks;
  readonly #volumes: Pick<AgentVolumes, 'find' | 'removeMadeIn'>;
  readonly #options: HelperOptions & { readonly idleMs: number; readonly most: number };
  /** Openings by agent, at most as many as helpers are allowed. */
  readonly #openings = new Map<string, Opening>();
  /** Connections whose helpers were ended here, with time to release their locks. */
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
    this.limiter = new FairLimiter({ atOnce: most, perOwner: ofOneOwner(most) });
  }

  /**
   * Sends a request to the agent's helper and returns the answer, as JSON that is not checked here.
   * @throws MemoryMissingError, ImageUnavailableError, UnavailableError if there are too many helpers;
   * BadGatewayError if the helper ends before it answers: the request may have taken effect
   */
  async call(
    program: string,
    spec: WorkspaceSpec,
    call: WorkspaceCall | RemoveSkillsCall,
    { signal, still }: RequestOptions,
  ): Promise<string> {
    for (let attempt = 1; ; attempt++) {
      const line = await this.#lineOf(program, spec, still);
      try {
        return await line.send(call, signal);
      } catch (error) {
        if (!(error instanceof HelperGoneError)) throw error;
        await this.#ending(line.container);
        // No retry of a change that may have been made already, nor of a request that ended a new helper.
        if (attempt === 2 || !mayRepeat(call) || !line.hasAnswered) {
          if (call.what === 'sync' && !this.#ended.has(line)) {
            await this.#clear(program, spec, { signal, still });
          }
          throw new BadGatewayError('The helper of the workspace ended before it answered: retry', {
            cause: error,
          });
        }
      }
    }
  }

  /**
   * Pushes a sync's commits from the agent's own network, under its network rules, and to the private
   * addresses of `allow`. A separate helper pushes, with read-only access, no name and no open port.
   * @throws ConflictError if the agent has no network; otherwise as `ask`
   */
  async push(
    program: string,
    spec: WorkspaceSpec,
    { allow, hash }: { readonly allow: readonly string[]; readonly hash: string },
    { signal, still }: RequestOptions,
  ): Promise<string> {
    const found = await this.#networks.find(spec.agentId);
    if (!found) throw new ConflictError(NO_NETWORK, 'AGENT_NOT_RUNNING');
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
      return await line.send({ what: 'push', hash }, signal);
    } finally {
      line?.end();
      await removeContainer(this.#client, id);
    }
  }

  /**
   * Removes helpers that remained after their end, or were created but never started: another process may be
   * about to start a helper younger than `startsWithinMs`.
   */
  async removeDead(startsWithinMs = STARTS_WITHIN_MS): Promise<void> {
    const label = helperLabels(this.#client);
    await removeLeftovers(this.#client, { label, status: ['exited', 'dead'] }, 0);
    await removeLeftovers(this.#client, { label, status: ['created'] }, startsWithinMs);
  }

  /** Removes the helpers that this process uses; other processes that use them get new ones. */
  async close(): Promise<void> {
    const all = [...this.#openings];
    await Promise.allSettled(all.map(([agentId, { opened }]) => this.#end(agentId, opened)));
  }

  /** Waits until Docker reports that a helper has ended, so that it is not found again. */
  async #ending(id: string): Promise<void> {
    await this.#client
      .callUnless(
        [404],
        (docker, bound) => docker.getContainer(id).wait({ condition: 'not-running', ...bound }),
        ENDING_MS,
      )
      .catch((error: unknown) => {
        if (!(error instanceof DockerUnavailableError)) throw error; // only the connection broke
      });
  }

  /** Removes, with another helper, the locks of a killed helper, which would block the agent's own git. */
  async #clear(
    program: string,
    spec: WorkspaceSpec,
    { signal, still }: RequestOptions,
  ): Promise<void> {
    try {
      const line = await this.#lineOf(program, spec, still);
      await line.send({ what: 'tree', depth: 1 }, signal); // every request begins by removing stale locks
    } catch {
      // The caller gets the error of the sync; the next request removes the locks.
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
      forget, // the waiting caller gets the error
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
        // Another process has just created a helper, or the existing helper has ended.
        if (!(error instanceof DockerRefusedError)) throw error;
        const isPassing = [404, 409].includes(error.statusCode);
        if (attempt >= (isPassing ? ATTEMPTS : FAILURES)) throw error;
      }
      await delay(ATTEMPT_PAUSE_MS);
    }
  }

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
      // A created helper is about to be started by its creator or by the next caller.
      const isUsable = found.State.Running || found.State.Status === 'created';
      if (isUsable && there[LABEL.spec] === labels[LABEL.spec]) return found.Id;
      await endHelper(this.#client, found.Id);
    }
    if (!(await this.#volumes.find(spec))) throw new MemoryMissingError(spec.volume);
    await this.#makeRoom(spec);
    return createContainer(this.#client, { name, ...options, Labels: labels });
  }

  /** Starts a created helper; removes it if its memory is missing or must no longer be touched. */
  async #start(id: string, spec: WorkspaceSpec, still: () => Promise<void>): Promise<void> {
    const { agentId, volume } = spec;
    if (!(await this.#volumes.find({ agentId, volume }))) {
      await endHelper(this.#client, id);
      // Docker has recreated the volume, empty.
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

  /** Ends the least recently used helpers if there are too many. @throws UnavailableError */
  async #makeRoom({ agentId, userId }: WorkspaceSpec): Promise<void> {
    // Only running helpers count; those never started occupy nothing and are removed elsewhere.
    const filters = { label: helperLabels(this.#client) };
    const all = await this.#client.listContainers({ filters });
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
      throw new UnavailableError('Too many workspaces are in use: retry in a minute');
    }
    await this.#end(longest[0], longest[1].opened);
  }
}
