import { isCancellation, log, proxyActivities } from '@temporalio/workflow';
import type { NotificationActivities } from '../activities/notifications.js';
import type { Notification } from '../src/notifications/notification.js';
import { failureReason } from './failure-reason.js';
import * as retries from './retries.js';

/** What operators are told, beside what the workflow does: nothing waits for it. */
export class Notices {
  readonly #operators = proxyActivities<NotificationActivities>(retries.notification);
  #underWay = 0;

  send(notification: Notification): void {
    this.#underWay++;
    void this.#operators
      .notify(notification)
      .catch((error: unknown) => {
        if (isCancellation(error)) return;
        log.warn('operators were not told', { reason: failureReason(error) });
      })
      .finally(() => {
        this.#underWay--;
      });
  }

  /** Whether none is under way; each of them is bounded. */
  areSent(): boolean {
    return this.#underWay === 0;
  }
}
