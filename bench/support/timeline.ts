import { Client, Connection } from '@temporalio/client';
import type { temporal } from '@temporalio/proto';
import { provisionAgentId, superviseAgentId } from '../../workflows/ids.js';
import { median } from './statistics.js';

type HistoryEvent = temporal.api.history.v1.IHistoryEvent;

/** A step of a provisioning from its workflow history, in milliseconds from sending the request. */
export interface Step {
  readonly name: string;
  readonly scheduled: number;
  readonly started: number;
  readonly ended: number;
}

/** Reads the times of the steps of a provisioning from Temporal. */
export class Timelines {
  readonly #connection: Connection;
  readonly #client: Client;

  private constructor(connection: Connection, client: Client) {
    this.#connection = connection;
    this.#client = client;
  }

  static async connect(address: string): Promise<Timelines> {
    const connection = await Connection.connect({ address });
    return new Timelines(connection, new Client({ connection }));
  }

  async of(agentId: string, sentAt: number): Promise<Step[]> {
    const steps: Step[] = [];
    for (const [label, id] of [
      ['superviseAgent', superviseAgentId(agentId)],
      ['provisionAgent', provisionAgentId(agentId)],
    ] as const) {
      const { events } = await this.#client.workflow.getHandle(id).fetchHistory();
      const history = events ?? [];
      const at = (event: HistoryEvent | undefined) => timeOf(event) - sentAt;
      steps.push({
        name: label,
        scheduled: at(history[0]),
        started: at(history.find((event) => event.workflowTaskStartedEventAttributes)),
        ended: at(history.at(-1)),
      });
      for (const event of history) {
        const scheduled = event.activityTaskScheduledEventAttributes;
        if (!scheduled) continue;
        const isOf = (attributes?: { scheduledEventId?: unknown } | null) =>
          attributes?.scheduledEventId?.toString() === event.eventId?.toString();
        steps.push({
          name: scheduled.activityType?.name ?? '',
          scheduled: at(event),
          started: at(history.find((each) => isOf(each.activityTaskStartedEventAttributes))),
          ended: at(history.find((each) => isOf(each.activityTaskCompletedEventAttributes))),
        });
      }
    }
    // Later steps of the supervisor are not part of the provisioning.
    return steps.filter(({ name }) => name !== 'watchHealth');
  }

  async close(): Promise<void> {
    await this.#connection.close();
  }
}

/** Returns the medians of each step over several provisionings. */
export function medianSteps(timelines: readonly (readonly Step[])[]): Step[] {
  const names = [...new Set(timelines.flatMap((steps) => steps.map(({ name }) => name)))];
  return names.map((name) => {
    const all = timelines.flatMap((steps) => steps.filter((step) => step.name === name));
    const of = (key: 'scheduled' | 'started' | 'ended') => median(all.map((step) => step[key]));
    return { name, scheduled: of('scheduled'), started: of('started'), ended: of('ended') };
  });
}

function timeOf(event: HistoryEvent | undefined): number {
  const { seconds, nanos } = event?.eventTime ?? {};
  return Number(seconds ?? Number.NaN) * 1_000 + (nanos ?? 0) / 1e6;
}
