import { Context } from '@temporalio/activity';
import { ApplicationFailure, ApplicationFailureCategory } from '@temporalio/common';
import type { NotificationChannelName } from '../src/database/models.js';
import type { Notification } from '../src/notifications/notification.js';
import type { Notifier } from '../src/notifications/notifier.js';
import { asApplicationFailure } from './failures.js';

/** How a notification ended, by channel; empty when nobody is to be told. */
export type Notified = Partial<Record<NotificationChannelName, 'sent' | 'repeated' | 'dropped'>>;

/** What operators are told. Asked for again, it tells only whom it is not known to have told. */
export function createNotificationActivities(notifier: Notifier) {
  return {
    /** Fails, to be tried again after the delay it names, as long as a channel is to be told later. */
    notify: (notification: Notification) =>
      asApplicationFailure(async (): Promise<Notified> => {
        const notified: Notified = {};
        const waiting: { delayMs: number; reason: string }[] = [];
        for (const delivery of await notifier.notify(notification)) {
          const { channel, outcome } = delivery;
          if (outcome === 'waiting') {
            waiting.push(delivery);
            continue;
          }
          notified[channel] = outcome;
          if (outcome === 'dropped') {
            const { reason } = delivery;
            const { event } = notification;
            Context.current().log.warn('notification dropped', { channel, event, reason });
          }
        }
        if (waiting.length === 0) return notified;
        throw ApplicationFailure.create({
          type: 'NotificationWaiting',
          message: waiting.map(({ reason }) => reason).join('; '),
          category: ApplicationFailureCategory.BENIGN,
          nextRetryDelay: Math.min(...waiting.map(({ delayMs }) => delayMs)),
        });
      }),
  };
}

export type NotificationActivities = ReturnType<typeof createNotificationActivities>;
