import type { Readable } from 'node:stream';
import * as z from 'zod';
import { containerName, LABEL } from './container-spec.js';
import type { DockerClient } from './docker-client.js';

/** What bears on the end of a container. */
const ACTIONS = ['start', 'kill', 'oom', 'die', 'stop'] as const;

/** An event is a line of JSON with the container's labels in it; more than this is no event. */
const MAX_LINE_LENGTH = 1024 * 1024;

/** One event of Docker about a container of ours. */
export interface DockerEvent {
  readonly action: (typeof ACTIONS)[number];
  readonly containerId: string;
  readonly agentId: string;
  readonly userId: string;
  /** Of a `die`, where Docker says it. */
  readonly exitCode: number | null;
  /** Of a `kill`: the number of the signal, as Docker writes it. */
  readonly signal: string | undefined;
  /** Unix nanoseconds by Docker's clock. */
  readonly at: bigint;
}

const message = z.object({
  Action: z.enum(ACTIONS),
  Actor: z.object({ ID: z.string(), Attributes: z.record(z.string(), z.string()) }),
});

/**
 * Opens Docker's event stream for this installation's containers: what it still remembers
 * since then (256 events of any kind at most), and then what happens.
 *
 * @param since Unix nanoseconds.
 */
export function openEvents(
  client: DockerClient,
  since: bigint,
  timeoutMs: number,
): Promise<Readable> {
  const second = 1_000_000_000n;
  return client.openStream(
    '/events',
    {
      since: `${since / second}.${String(since % second).padStart(9, '0')}`,
      filters: {
        type: ['container'],
        event: [...ACTIONS],
        label: [`${LABEL.installation}=${client.installation}`],
      },
    },
    { timeoutMs },
  );
}

/** The events of a stream, until it ends or fails. */
export async function* readEvents(stream: Readable): AsyncGenerator<DockerEvent> {
  stream.setEncoding('utf8');
  let rest = '';
  for await (const chunk of stream) {
    const lines = (rest + String(chunk)).split('\n');
    rest = lines.pop() ?? '';
    if (rest.length > MAX_LINE_LENGTH) throw new RangeError('Docker sent a line without end');
    for (const line of lines) {
      const event = parseEvent(line);
      if (event) yield event;
    }
  }
}

/** Undefined for what is no event about an agent's container. */
function parseEvent(line: string): DockerEvent | undefined {
  // As text, again because they do not fit into a number.
  const nanoseconds = /"timeNano":(\d+)/.exec(line)?.[1];
  if (nanoseconds === undefined) return undefined;
  const parsed = message.safeParse(JSON.parse(line));
  if (!parsed.success) return undefined;
  const { Action: action, Actor: actor } = parsed.data;
  const { name, exitCode, signal, ...labels } = actor.Attributes;
  const { [LABEL.agent]: agentId, [LABEL.owner]: userId } = labels;
  if (agentId === undefined || userId === undefined) return undefined;
  // Containers of the agent that have another name come and go while it is updated.
  if (name !== containerName(agentId)) return undefined;
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
