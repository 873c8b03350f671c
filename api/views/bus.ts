import * as z from 'zod';
import { fieldMessage } from '../../src/lib/field-name.js';
import { BUS_SERVICES, MESSAGE_STATUSES } from '../../src/types/bus.js';
import type { ShownMessage } from '../../src/bus/bus-messages.js';
import { formatOf, type BodyFormat } from '../http/body-format.js';

/** Maximum bytes of a request with a message. */
const MAX_MESSAGE_BYTES = 64 * 1024;

const agentId = z.string().min(1).max(256);

/** Unique for a sender, and a header of each delivery. */
export const messageId = z
  .string()
  .regex(/^[\x21-\x7e]{1,200}$/, fieldMessage('must be 1 to 200 visible ASCII characters'));

/** The parts of a message that its sender writes. */
export const messageParts = {
  messageId,
  action: z.string().min(1).max(100).describe('Begins with `BOOKING_` or `AMPLIFY_`'),
  to: agentId.describe('The recipient, an agent'),
  payload: z.looseObject({}).describe('An object that the recipient understands'),
};

export const message = {
  ...messageParts,
  from: agentId.describe('The sender, an agent'),
  timestamp: z.int().min(0).describe('Unix seconds, within 5 minutes of now'),
};

export const sentMessage = z.strictObject({ success: z.literal(true), messageId: z.string() });

/** Declares a JSON body of at most 64 kB. */
export function messageBody<S extends z.ZodType>(schema: S): BodyFormat<z.output<S>> {
  // Safe cast: the format of a schema has the schema's output.
  return { ...formatOf(schema), maxBytes: MAX_MESSAGE_BYTES } as BodyFormat<z.output<S>>;
}

export const shownMessage = z
  .strictObject({
    messageId: z.string(),
    action: z.string(),
    from: z.string(),
    to: z.string(),
    service: z.enum(BUS_SERVICES),
    status: z.enum(MESSAGE_STATUSES),
    step: z
      .enum(['taken', 'illegal'])
      .nullable()
      .describe('The step in its negotiation; an illegal one changes nothing'),
    attempts: z.array(
      z.strictObject({
        at: z.iso.datetime(),
        status: z.int().nullable().describe('Status of the receiver; null without an answer'),
        error: z.string().nullable(),
      }),
    ),
    createdAt: z.iso.datetime(),
    deliveredAt: z.iso.datetime().nullable(),
  })
  .meta({ id: 'BusMessage' });

export const presentMessage = ({
  createdAt,
  deliveredAt,
  id,
  ...shown
}: ShownMessage): z.infer<typeof shownMessage> => ({
  ...shown,
  attempts: [...shown.attempts],
  createdAt: createdAt.toISOString(),
  deliveredAt: deliveredAt?.toISOString() ?? null,
});
