import { isUtf8 } from 'node:buffer';
import * as z from 'zod';
import { BadRequestError, ServiceError } from '../../src/lib/errors.js';
import { withWholePairs } from '../../src/lib/json.js';
import { refuseDeep, refuseUnstorable } from './storable.js';
import { validator } from './validation.js';
import { hasMoreValues } from './value-count.js';

/** Size limit of bodies unless the endpoint allows more (spec 8). */
export const MAX_BODY_BYTES = 1024 * 1024;

/** Size limit of forms. */
const MAX_FORM_BYTES = 64 * 1024;

/** Maximum number of JSON values: processing 1 MB with that many takes 10 ms; with more, up to 100 ms. */
const MAX_VALUES = 50_000;
/** Smaller JSON is not counted: it cannot hold enough values to matter. */
const FEW_BYTES = 64 * 1024;

/** The encoding of a request body, and its parser. */
export interface BodyFormat<Output = unknown> {
  /** Accepted content types; empty accepts any. */
  readonly types: readonly string[];
  readonly maxBytes: number;
  readonly schema: z.ZodType;
  /**
   * Parses a body.
   * @param bytes undefined if the request has no body.
   * @throws BadRequestError with a sentence that names the fault.
   */
  read(bytes: Buffer | undefined, contentType: string): Output | Promise<Output>;
}

/** The type of a declared body for handlers; a plain schema means JSON. */
export type BodyOf<B> = B extends z.ZodType
  ? z.output<B>
  : B extends BodyFormat<infer Output>
    ? Output
    : undefined;

export function formatOf(body: z.ZodType | BodyFormat): BodyFormat {
  return 'safeParse' in body ? jsonBody(body) : body;
}

function jsonBody<S extends z.ZodType>(schema: S): BodyFormat<z.output<S>> {
  return jsonBodyOf(schema, (text) => {
    const body = parseJson(text);
    refuseUnstorable(body, 'body');
    return body;
  });
}

/**
 * Declares a JSON body that is passed on and never stored: NUL stays, and half of a surrogate pair, which no
 * UTF-8 can hold, becomes U+FFFD.
 */
export function passedOnBody<S extends z.ZodType>(schema: S): BodyFormat<z.output<S>> {
  return jsonBodyOf(schema, (text) => {
    const body = parseJson(withWholePairs(text));
    refuseDeep(body, 'body');
    return body;
  });
}

function jsonBodyOf<S extends z.ZodType>(
  schema: S,
  parse: (text: string) => unknown,
): BodyFormat<z.output<S>> {
  const check = validator(schema, 'body');
  // A missing body is validated as `{}`, so that the error names the missing field.
  const noBody = schema.safeParse(undefined).success ? undefined : {};
  return {
    types: ['application/json'],
    maxBytes: MAX_BODY_BYTES,
    schema,
    read(bytes) {
      if (bytes === undefined) return check(noBody);
      const text = textOf(bytes);
      if (bytes.length > FEW_BYTES && hasMoreValues(bytes, MAX_VALUES)) {
        throw new ServiceError(413, `Request body has too many values (at most ${MAX_VALUES})`);
      }
      return check(parse(text));
    },
  };
}

/** Declares a raw body, passed on byte for byte, as signature checks need it. */
export function rawBody(...types: readonly string[]): BodyFormat<Buffer> {
  return {
    types,
    maxBytes: MAX_BODY_BYTES,
    schema: z.file(),
    read: (bytes = Buffer.alloc(0)) => bytes,
  };
}

/** Declares a text body that is not JSON, such as `application/jwt`. */
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

/** Declares a form, whose last value of a name counts. */
export function formBody<S extends z.ZodType>(schema: S): BodyFormat<z.output<S>> {
  const check = validator(schema, 'body');
  return {
    types: ['application/x-www-form-urlencoded'],
    maxBytes: MAX_FORM_BYTES,
    schema,
    read(bytes = Buffer.alloc(0)) {
      const form = Object.fromEntries(new URLSearchParams(textOf(bytes)));
      refuseUnstorable(form, 'body');
      return check(form);
    },
  };
}

function textOf(bytes: Buffer): string {
  if (!isUtf8(bytes)) throw new BadRequestError('Request body is not valid UTF-8');
  return bytes.toString('utf8');
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new ServiceError(400, 'Request body is not valid JSON', undefined, {}, { cause: error });
  }
}
