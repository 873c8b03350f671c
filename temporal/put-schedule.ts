import { ScheduleAlreadyRunning, type Client, type ScheduleOptions } from '@temporalio/client';

/** What there is of a schedule to be made or changed. */
export type ScheduleContent = Pick<ScheduleOptions, 'spec' | 'action' | 'policies'>;

/** Makes the schedule, or makes the one that is there what it is to be. Again it changes nothing. */
export async function putSchedule(
  { schedule }: Client,
  scheduleId: string,
  content: ScheduleContent,
): Promise<void> {
  try {
    await schedule.create({ scheduleId, ...content });
  } catch (error) {
    if (!(error instanceof ScheduleAlreadyRunning)) throw error;
    await schedule.getHandle(scheduleId).update(() => ({ ...content, state: {} }));
  }
}
