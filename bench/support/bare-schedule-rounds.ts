import type { ChildProcess } from 'node:child_process';
import { ScheduleOverlapPolicy, type Client } from '@temporalio/client';
import { poll } from '../../dev/poll.js';
import { FairLimiter } from '../../src/lib/fair-limiter.js';
import type { AtEnd } from './cleanups.js';
import { forkUntilMessage } from './child.js';
import { dueMinute, roundTimeoutMs } from './due-minute.js';

const QUEUE = 'bare';

/** Schedules that are made at a time. */
const AT_ONCE = 20;

/** Bare schedules of Temporal, each with one activity. */
export class BareSchedules {
  readonly #client: Client;
  #ended = 0;
  #lastAt = 0;

  private constructor(client: Client, child: ChildProcess) {
    this.#client = client;
    child.on('message', ({ at, ended }: { readonly at: number; readonly ended: number }) => {
      this.#ended = ended;
      this.#lastAt = at;
    });
  }

  static async open(client: Client, address: string, atEnd: AtEnd): Promise<BareSchedules> {
    const { child } = await forkUntilMessage('bare-schedules', [address, QUEUE]);
    atEnd(() => void child.kill());
    return new BareSchedules(client, child);
  }

  /**
   * Makes this number of schedules due in one minute, and returns the runs a second until the last one has
   * ended.
   */
  async measure(count: number): Promise<number> {
    const before = this.#ended;
    const { at, cron } = dueMinute(count);
    const limiter = new FairLimiter({ atOnce: AT_ONCE, perOwner: AT_ONCE });
    const each = Array.from({ length: count }, (_, index) => `bare-${index}-${at}`);
    await Promise.all(
      each.map((scheduleId) =>
        limiter.run({ owner: '' }, () =>
          this.#client.schedule.create({
            scheduleId,
            spec: { cronExpressions: [cron] },
            policies: { overlap: ScheduleOverlapPolicy.SKIP },
            action: {
              type: 'startWorkflow',
              workflowType: 'bareRun',
              workflowId: scheduleId,
              taskQueue: QUEUE,
            },
          }),
        ),
      ),
    );
    if (Date.now() > at) throw new Error('The schedules took longer than expected: use fewer');
    const missing = () => before + count - this.#ended;
    const ended = () => Promise.resolve(missing() <= 0 || undefined);
    if ((await poll(ended, { timeoutMs: roundTimeoutMs(count), everyMs: 20 })) === undefined) {
      throw new Error(`${missing()} of ${count} bare schedules did not run in time`);
    }
    const rate = count / ((this.#lastAt - at) / 1_000);
    await Promise.all(
      each.map((id) =>
        limiter.run({ owner: '' }, () => this.#client.schedule.getHandle(id).delete()),
      ),
    );
    return rate;
  }
}
