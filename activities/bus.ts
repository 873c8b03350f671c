import { Context } from '@temporalio/activity';
import { ApplicationFailure } from '@temporalio/common';
import { HostBusyError, type BusDelivery } from '../src/bus/bus-delivery.js';
import { asApplicationFailure } from './failures.js';

/** Time until a delivery is tried for which the host had no place. */
const BUSY_RETRY = '2 seconds';

/** Creates the activities that only read and write a message's rows. A message is named by its row. */
export const createBusRecordActivities = (delivery: Pick<BusDelivery, 'route' | 'giveUp'>) => ({
  routeBusMessage: (id: string) => asApplicationFailure(() => delivery.route(id)),
  giveUpBusMessage: (id: string) => asApplicationFailure(() => delivery.giveUp(id)),
});

export type BusRecordActivities = ReturnType<typeof createBusRecordActivities>;

/** Creates the activity that posts messages to webhooks. */
export const createBusActivities = (delivery: Pick<BusDelivery, 'deliver'>) => ({
  postBusMessage: (id: string) =>
    asApplicationFailure(async () => {
      try {
        return await delivery.deliver(id, Context.current().cancellationSignal);
      } catch (error) {
        if (!(error instanceof HostBusyError)) throw error;
        throw ApplicationFailure.create({
          message: error.message,
          type: error.name,
          nextRetryDelay: BUSY_RETRY,
        });
      }
    }),
});

export type BusActivities = ReturnType<typeof createBusActivities>;
