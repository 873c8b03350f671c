import { createHash } from 'node:crypto';
import canonicalize from 'canonicalize';
import { BadRequestError } from '../lib/errors.js';
import type { BusService } from '../types/bus.js';

/** A message without its signature. */
export interface BusMessage {
  readonly messageId: string;
  readonly action: string;
  /** Ids of agents. */
  readonly from: string;
  readonly to: string;
  readonly payload: Readonly<Record<string, unknown>>;
  /** Unix seconds. */
  readonly timestamp: number;
}

/** The first line of each signed text: wallets sign nothing else for the bus. */
export const BUS_TEXT_BEGIN = 'agent-platform-bus:v1\n';

const SERVICE_OF: Readonly<Record<string, BusService>> = {
  BOOKING_: 'negotiation',
  AMPLIFY_: 'amplification',
};

/** Returns the service of an action; undefined for an action of none. */
function serviceOf(action: string): BusService | undefined {
  return SERVICE_OF[action.slice(0, 'BOOKING_'.length)];
}

export interface PreparedMessage {
  readonly message: BusMessage;
  readonly service: BusService;
  readonly canonical: string;
}

/** Returns a message with its service and its canonical text. @throws BadRequestError */
export function prepared(message: BusMessage): PreparedMessage {
  const service = serviceOf(message.action);
  if (service === undefined) {
    throw new BadRequestError('action must begin with BOOKING_ or AMPLIFY_');
  }
  return { message, service, canonical: canonicalMessage(message) };
}

/** Returns a message as canonical JSON (RFC 8785). @throws BadRequestError for a number beyond JSON's. */
function canonicalMessage(message: BusMessage): string {
  const { messageId, action, from, to, payload, timestamp } = message;
  try {
    const text = canonicalize({ messageId, action, from, to, payload, timestamp });
    if (text !== undefined) return text;
  } catch {
    // The only values of parsed JSON without a canonical form are numbers such as 1e999.
  }
  throw new BadRequestError('payload has a number that is too large');
}

/** Returns the text that the sender's wallet signs. */
export const busText = (canonical: string): string => BUS_TEXT_BEGIN + canonical;

/** Returns the digest by which a repeated message is recognized, also with another timestamp. */
export const digestOf = (message: BusMessage): string =>
  createHash('sha256')
    .update(canonicalMessage({ ...message, timestamp: 0 }))
    .digest('hex');
