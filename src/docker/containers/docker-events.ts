import type { Readable } from 'node:stream';
import * as z from 'zod';
import { LABEL } from './container-spec.js';
import type { DockerClient } from './docker-client.js';
import { isOwnContainer } from './own-containers.js';

/** Event actions that matter for the end of a container. */
const ACTIONS = ['start', 'kill', 'oom', 'die', 'stop'] as const;

/** Maximum number of characters of an event: one line of JSON with the container's labels. */
const MAX_LINE_LENGTH = 1024 * 1024;

export interface DockerEvent {
  readonly action: (typeof ACTIONS)[number];
  readonly containerId: string;
  readonly agentId: string;
  readonly userId: string;
  /** For a `die`, if Docker reports it. */
  readonly exitCode: number | null;
  /** For a `kill`: the signal's number, as Docker writes it. */
  readonly signal: string | undefined;
  /** Unix nanoseconds by Docker's clock. */
  readonly at: bigint;
}

const message = z.object({
  Action: z.enum(ACTIONS),
  Actor: z.object({ ID: z.string(), Attributes: z.record(z.string(), z.string()) }),
});

interface EventRange {
  /** Unix nanoseconds, like the next field. */
  readonly since: bigint;
  /** Undefined for a stream that continues with new events. */
  readonly until?: bigint;
  /** Id of the only container; all containers of the installation if undefined. */
  readonly container?: string;
}

/**
 * Opens the event stream of this installation's containers: stored events (256 of any kind at most), then new
 * events.
 */
export function openEvents(
  client: DockerClient,
  { container, since, until }: EventRange,
  limits: { readonly timeoutMs?: number; readonly signal?: AbortSignal },
): Promise<Readable> {
  return client.openStream(
    '/events',
    {
      since: seconds(since),
      ...(until !== undefined && { until: seconds(until) }),
      filters: {
        type: ['container'],
        event: [...ACTIONS],
        label: [`${LABEL.installation}=${client.installation}`],
        ...(container !== undefined && { container: [container] }),
      },
    },
    limits,
  );
}

function seconds(nanoseconds: bigint): string {
  const second = 1_000_000_000n;
  return `${nanoseconds / second}.${String(nanoseconds % second).padStart(9, '0')}`;
}

export async function* readEvents(stream: Readable): AsyncGenerator<DockerEvent> {
  stream.setEncoding('utf8');
  let rest = '';
  for await (const chunk of stream) {
    const lines = (rest + String(chunk)).split('\n');
    rest = lines.pop() ?? '';
    if (rest.length > MAX_LINE_LENGTH)
      throw new RangeError('Docker sent an event line that is too long');
    for (const line of lines) {
      const event = parseEvent(line);
      if (event) yield event;
    }
  }
}

/** Returns undefined for an event that is not about an agent's container. */
function parseEvent(line: string): DockerEvent | undefined {
  // Read from the text, because nanoseconds do not fit into a number.
  const nanoseconds = /"timeNano":(\d+)/.exec(line)?.[1];
  if (nanoseconds === undefined) return undefined;
  const parsed = message.safeParse(JSON.parse(line));
  if (!parsed.success) return undefined;
  const { Action: action, Actor: actor } = parsed.data;
  const { name, exitCode, signal, ...labels } = actor.Attributes;
  const { [LABEL.agent]: agentId, [LABEL.owner]: userId } = labels;
  if (agentId === undefined || userId === undefined) return undefined;
  // An agent's spare containers are created and removed during updates.
  if (!isOwnContainer(labels, name)) return undefined;
  return {
    action,
    containerId: actor.ID,
    agentId,
    userId,
    exitCode: exitCode === undefined ? null : Number(exitCode),
    signal,
    at: BigInt(nanoseconds),
  };
}
