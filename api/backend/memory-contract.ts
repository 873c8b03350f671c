import * as z from 'zod';
import { MAX_MEMORY_WRITE_BYTES, MEMORY_MODES } from '../../src/agents/memory/runtime-memory.js';
import { internalKey } from '../auth/internal-key.js';
import { area } from '../http/area.js';
import { FILES_AT_ONCE } from './browse-contract.js';

/** Endpoints of agents' memory, without handlers: the web API serves them under the same path. */

const memory = area({
  tag: 'Files',
  auth: internalKey,
  atOnce: FILES_AT_ONCE,
  errors: [404, 409, 500, 502, 503],
});

const agentId = z.string().max(64);
const path = z.string().describe('`MEMORY.md`, `USER.md`, `SOUL.md` or a `.md` file in `memory/`');
const etag = z.string().max(64);

const file = {
  path: z.string(),
  size: z.int(),
  modified: z.iso.datetime(),
  etag: etag.meta({ examples: ['n4bQgYhMfWWaL-qgxVrQFaO_TxsrC4Is0V1sFbDwCgg'] }),
};

export const getMemory = memory.declare({
  method: 'GET',
  path: '/api/memory',
  operationId: 'getMemory',
  summary: "List the files of an agent's memory, read one, or find text in all",
  query: z
    .object({
      agentId: agentId.describe('The agent'),
      path: path.optional(),
      q: z.string().min(1).max(200).optional().describe('Text to find, in any case'),
    })
    .refine(({ path, q }) => path === undefined || q === undefined, {
      error: 'path and q exclude each other',
    }),
  responses: {
    200: z.union([
      z.strictObject({
        agentId,
        files: z.array(
          z.strictObject({ ...file, etag: file.etag.nullable().describe('null above 1 MiB') }),
        ),
        truncated: z
          .literal(true)
          .optional()
          .describe('True if files are missing from the list, because there are over 1,000'),
      }),
      z.strictObject({
        agentId,
        ...file,
        content: z.string(),
        encoding: z.literal('base64').optional(),
      }),
      z.strictObject({
        agentId,
        query: z.string().meta({ examples: ['coffee'] }),
        matches: z.array(z.strictObject({ path: z.string(), line: z.int(), text: z.string() })),
      }),
    ]),
  },
});

export const storeMemory = memory.declare({
  method: 'POST',
  path: '/api/memory',
  operationId: 'storeMemory',
  summary: "Append to a file of an agent's memory, or replace the file",
  idempotent: true,
  body: z.object({
    agentId,
    content: z.string().max(MAX_MEMORY_WRITE_BYTES),
    path: path.optional(),
    mode: z.enum(MEMORY_MODES).default('append'),
    etag: etag.optional().describe('The etag that the file must have'),
  }),
  responses: { 201: z.strictObject({ agentId, ...file }) },
});

export const MEMORY = [getMemory, storeMemory] as const;
