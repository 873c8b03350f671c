import { entitled, type Entitlement } from '../accounts/accounts/entitlement.js';
import type { Database } from '../platform/database/database.js';
import type { SecretBox } from '../platform/secrets/secret-box.js';
import { ConflictError, NotFoundError, TooManyRequestsError } from '../lib/errors.js';
import { PLAN_LIMITS, type Plan } from '../types/plans.js';
import { dailyMessagesUsedUp } from './daily-messages.js';
import { digestOf, type PreparedMessage } from './bus-message.js';
import { messageContext } from './sealed-contexts.js';

/** Maximum number of messages that an agent accepts in an hour. */
export const MAX_AN_HOUR = 600;

/** Maximum number of bytes of the stored messages of an owner, as sender and as recipient. */
export const MAX_STORED_BYTES = 256 * 1024 * 1024;

/** `Retry-After` in seconds of a request over the hourly or the storage limit. */
const RETRY_AFTER_S = 60;

interface Parts {
  readonly database: Database;
  readonly secrets: SecretBox;
}

/** The owner of a sender, with the current plan. */
export interface MessageOwner extends Pick<Entitlement, 'userId' | 'isAdmin'> {
  readonly plan: Plan | undefined;
}

interface Accepted {
  readonly outcome: 'stored' | 'known' | 'other' | 'recipient' | 'daily' | 'hourly' | 'bytes';
  /** The amount that counts toward the refusing limit. */
  readonly current: string | null;
}

/** The storage of messages whose sender is known, within the limits of both owners. */
export class BusAcceptance {
  readonly #parts: Parts;

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  /**
   * Stores a message for its delivery. The same message again changes nothing.
   * @throws PaymentRequiredError without a plan; NotFoundError without the recipient; ConflictError for another
   *   message of the same id; TooManyRequestsError
   */
  async accept(
    { canonical, message, service }: PreparedMessage,
    { isAdmin, plan, userId }: MessageOwner,
  ): Promise<void> {
    const { database, secrets } = this.#parts;
    const daily = PLAN_LIMITS[entitled(userId, isAdmin, plan).plan].agentMessagesPerDay;
    const { action, from, messageId, to } = message;
    const [accepted] = await database.asPlatform().query<Accepted>(
      `SELECT outcome, current FROM accept_bus_message(
         $from, $userId, $to, $messageId, $digest, $action, $service, $sealed, $daily, $hourly, $most)`,
      {
        ...{ from, userId, to, messageId, action, service, daily },
        digest: digestOf(message),
        sealed: secrets.seal(canonical, messageContext(from, messageId)),
        hourly: MAX_AN_HOUR,
        most: MAX_STORED_BYTES,
      },
    );
    refuse(accepted, daily);
  }
}

/** Throws the error of a message that was not accepted. */
function refuse(accepted: Accepted | undefined, daily: number): void {
  const current = Number(accepted?.current);
  switch (accepted?.outcome) {
    case 'other':
      throw new ConflictError(
        'Another message of this sender has this messageId: use a new one',
        'MESSAGE_ID_REUSED',
      );
    case 'recipient':
      throw new NotFoundError('Agent not found');
    case 'daily':
      throw dailyMessagesUsedUp(current, daily);
    case 'hourly':
      throw limitReached(
        'The recipient has reached its limit of messages for this hour: retry later',
        { max: MAX_AN_HOUR, resetS: RETRY_AFTER_S },
        { current, limit: MAX_AN_HOUR },
      );
    case 'bytes':
      throw limitReached(
        'The stored messages of the sender or of the recipient have reached their limit: retry when old ones were removed',
        { max: MAX_STORED_BYTES, resetS: RETRY_AFTER_S },
        { current, limit: MAX_STORED_BYTES },
      );
    default:
  }
}

const limitReached = (
  text: string,
  limit: { readonly max: number; readonly resetS: number },
  facts: { readonly current: number; readonly limit: number },
) => new TooManyRequestsError(text, limit, 'MESSAGE_LIMIT_REACHED', facts);
