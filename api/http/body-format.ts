import { isUtf8 } from 'node:buffer';
import * as z from 'zod';
import { BadRequestError, ServiceError } from '../../src/lib/errors.js';
import { refuseUnstorable } from './storable.js';
import { validator } from './validation.js';
import { hasMoreValues } from './value-count.js';

/** Spec section 8: every larger body is refused, unless its endpoint takes more. */
export const MAX_BODY_BYTES = 1024 * 1024;

/** Of somebody who has not shown who they are, and has no use for more. */
export const MAX_ANONYMOUS_BYTES = 16 * 1024;

/** Values in JSON: a megabyte of as many costs 10 ms of this process, of more than that 100. */
const MAX_VALUES = 50_000;
/** Less JSON than that cannot have so many that it matters. */
const FEW_BYTES = 64 * 1024;

/** How the body of a request comes, and what a handler gets of it. */
export interface BodyFormat<Output = unknown> {
  /** Content types that it takes; any, when none are named. */
  readonly types: readonly string[];
  readonly maxBytes: number;
  /** The same for those who have not shown who they are, where it is another. */
  readonly maxAnonymousBytes?: number;
  /** For the OpenAPI document. */
  readonly schema: z.ZodType;
  /**
   * @param bytes undefined when the request had no body.
   * @throws BadRequestError in a sentence that names the fault.
   */
  read(bytes: Buffer | undefined, contentType: string): Output | Promise<Output>;
}

/** What a handler gets of a declared body: a schema stands for JSON. */
export type BodyOf<B> = B extends z.ZodType
  ? z.output<B>
  : B extends BodyFormat<infer Output>
    ? Output
    : undefined;

export function formatOf(body: z.ZodType | BodyFormat): BodyFormat {
  return 'safeParse' in body ? jsonBody(body) : body;
}

/** @param maxAnonymousBytes for an endpoint that anybody may send more. */
export function jsonBody<S extends z.ZodType>(
  schema: S,
  maxAnonymousBytes = MAX_ANONYMOUS_BYTES,
): BodyFormat<z.output<S>> {
  const check = validator(schema, 'body');
  // So that a missing body is told as the field that is missing, where one is.
  const noBody = schema.safeParse(undefined).success ? undefined : {};
  return {
    types: ['application/json'],
    maxBytes: MAX_BODY_BYTES,
    maxAnonymousBytes,
    schema,
    read: (bytes) => check(bytes === undefined ? noBody : parseJson(bytes)),
  };
}

/** A body as it came, byte for byte: what a signature is checked against. */
export function rawBody(...types: readonly string[]): BodyFormat<Buffer> {
  return {
    types,
    maxBytes: MAX_BODY_BYTES,
    schema: z.file(),
    read: (bytes = Buffer.alloc(0)) => bytes,
  };
}

/** A body of text that is no JSON, such as `application/jwt`. */
export function textBody<S extends z.ZodType<unknown, string>>(
  schema: S,
  ...types: readonly string[]
): BodyFormat<z.output<S>> {
  const check = validator(schema, 'body');
  return {
    types,
    maxBytes: MAX_BODY_BYTES,
    schema,
    read(bytes) {
      const text = bytes && textOf(bytes);
      refuseUnstorable(text, 'body');
      return check(text);
    },
  };
}

function textOf(bytes: Buffer): string {
  if (!isUtf8(bytes)) throw new BadRequestError('Request body is not valid UTF-8');
  return bytes.toString('utf8');
}

function parseJson(bytes: Buffer): unknown {
  const text = textOf(bytes);
  if (bytes.length > FEW_BYTES && hasMoreValues(bytes, MAX_VALUES)) {
    throw new ServiceError(413, `Request body has too many values (at most ${MAX_VALUES})`);
  }
  let body: unknown;
  try {
    body = JSON.parse(text);
  } catch (error) {
    throw new ServiceError(400, 'Request body is not valid JSON', undefined, {}, { cause: error });
  }
  refuseUnstorable(body, 'body');
  return body;
}
