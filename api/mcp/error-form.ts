import * as z from 'zod';
import type { ErrorForm } from '../http/endpoint.js';

/** The first code that JSON-RPC reserves for a server's own errors. */
const SERVER_ERROR = -32_000;

/** Errors in the format of JSON-RPC, for requests that reach no tool. */
export const RPC_ERRORS: ErrorForm = {
  name: 'RpcError',
  schema: z
    .strictObject({
      jsonrpc: z.literal('2.0'),
      error: z.looseObject({ code: z.int(), message: z.string() }),
      id: z.null(),
    })
    .meta({ id: 'RpcError' }),
  of: ({ body: { error, ...facts } }) => ({
    jsonrpc: '2.0',
    error: {
      code: SERVER_ERROR,
      message: error,
      ...(Object.keys(facts).length > 0 && { data: facts }),
    },
    id: null,
  }),
};
