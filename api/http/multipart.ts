import { Busboy } from '@fastify/busboy';
import * as z from 'zod';
import { BadRequestError, ServiceError } from '../../src/lib/errors.js';
import type { BodyFormat } from './body-format.js';
import { byName, type NamedValues } from './named-values.js';
import { refuseUnstorable } from './storable.js';
import { validator } from './validation.js';

const TYPE = 'multipart/form-data';

/** An uploaded file, in memory; the form limits its size. */
export interface UploadedFile {
  /** The client's name for the file; not a path. */
  readonly name: string;
  readonly contentType: string;
  readonly bytes: Buffer;
}

interface Form {
  readonly fields: NamedValues;
  readonly files: Map<string, UploadedFile>;
}

/**
 * Declares a multipart form of at most `maxBytes` and `maxParts` (fields and files), with files sent once.
 * @param form.files the accepted content types of each file, by field name.
 */
export function multipartBody<S extends z.ZodObject, const F extends string>(form: {
  readonly fields: S;
  readonly files: Readonly<Record<F, readonly string[]>>;
  readonly maxBytes: number;
  readonly maxParts: number;
}): BodyFormat<{
  readonly fields: z.output<S>;
  readonly files: Readonly<Record<F, UploadedFile>>;
}> {
  const { fields, files, maxBytes, maxParts } = form;
  const wanted = Object.entries<readonly string[]>(files);
  const checkFields = validator(fields, 'body');
  return {
    types: [TYPE],
    maxBytes,
    schema: fields.extend(Object.fromEntries(wanted.map(([name]) => [name, z.file()]))),
    async read(bytes, contentType) {
      if (bytes === undefined) throw new BadRequestError('body is required');
      const sent = await parseForm(bytes, contentType, maxParts);
      for (const name of sent.files.keys()) {
        if (!Object.hasOwn(files, name)) throw new BadRequestError(`${name} is not a known field`);
      }
      for (const [name, types] of wanted) {
        const file = sent.files.get(name);
        if (!file) throw new BadRequestError(`${name} is required`);
        if (!types.includes(file.contentType)) {
          throw new ServiceError(415, `${name} must be ${types.join(' or ')}`);
        }
      }
      const fileNames = [...sent.files.values()].map(({ name }) => name);
      refuseUnstorable([sent.fields, fileNames], 'body');
      return {
        fields: checkFields(sent.fields),
        // Safe cast: the loop above found every declared file.
        files: Object.fromEntries(sent.files) as Record<F, UploadedFile>,
      };
    },
  };
}

function parseForm(bytes: Buffer, contentType: string, maxParts: number): Promise<Form> {
  return new Promise((resolve, reject) => {
    const malformed = (cause: unknown) =>
      reject(new ServiceError(400, 'Request body is not a valid form', undefined, {}, { cause }));
    const fields: [string, string][] = [];
    const files = new Map<string, UploadedFile>();
    const begun = new Set<string>();
    let parser;
    try {
      parser = new Busboy({
        headers: { 'content-type': contentType },
        limits: { parts: maxParts, fieldSize: bytes.length, headerPairs: 20, headerSize: 8_192 },
      });
    } catch (error) {
      // The multipart parser throws if the content type has no boundary.
      return malformed(error);
    }
    parser.on('field', (name, value) => fields.push([name, value]));
    parser.on('file', (field, stream, name, _encoding, type) => {
      const chunks: Buffer[] = [];
      if (begun.has(field)) reject(new BadRequestError(`${field} must be sent only once`));
      begun.add(field);
      stream.on('data', (chunk: Buffer) => chunks.push(chunk));
      stream.once('error', malformed);
      stream.once('end', () =>
        files.set(field, { name: name ?? '', contentType: type, bytes: Buffer.concat(chunks) }),
      );
    });
    parser.once('partsLimit', () =>
      reject(new ServiceError(413, `Request body has too many parts (at most ${maxParts})`)),
    );
    parser.once('error', malformed);
    parser.once('finish', () => resolve({ fields: byName(fields), files }));
    parser.end(bytes);
  });
}
