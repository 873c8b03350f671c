import { isUtf8 } from 'node:buffer';
import { z } from 'zod';
import { BadRequestError, ServiceError } from '../../src/errors.js';
import { refuseUnstorable } from './storable.js';
import { validator } from './validation.js';

/** Spec section 8: every larger body is refused, unless its endpoint takes more. */
export const MAX_BODY_BYTES = 1024 * 1024;

/** How the body of a request comes, and what a handler gets of it. */
export interface BodyFormat<Output = unknown> {
  /** Content types that it takes; any, when none are named. */
  readonly types: readonly string[];
  readonly maxBytes: number;
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

function jsonBody(schema: z.ZodType): BodyFormat {
  const check = validator(schema, 'body');
  // So that a missing body is told as the field that is missing, where one is.
  const noBody = schema.safeParse(undefined).success ? undefined : {};
  return {
    types: ['application/json'],
    maxBytes: MAX_BODY_BYTES,
    schema,
    read: (bytes) => check(bytes === undefined ? noBody : parseJson(textOf(bytes))),
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

function parseJson(text: string): unknown {
  let body: unknown;
  try {
    body = JSON.parse(text);
  } catch (error) {
    throw new ServiceError(400, 'Request body is not valid JSON', undefined, {}, { cause: error });
  }
  refuseUnstorable(body, 'body');
  return body;
}
