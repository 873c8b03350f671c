import * as z from 'zod';
import { anonymous } from '../auth/anonymous.js';
import { endpoint, type Endpoint } from './endpoint.js';
import { reply, type Reply } from './reply.js';

export const serviceIndex = z
  .strictObject({
    service: z.string(),
    documentation: z.string().describe('Path of the reference page'),
    openapi: z.string().describe('Path of the OpenAPI document'),
  })
  .meta({ id: 'ServiceIndex' });

/** Returns the answer of `GET /` to programs. */
export const indexReply = (service: string): Reply<200, z.infer<typeof serviceIndex>> =>
  reply(200, { service, documentation: '/docs', openapi: '/openapi.json' });

/** Creates `GET /`, which names the documentation. @param service the name of the service. */
export const indexEndpoint = (service: string): Endpoint =>
  endpoint({
    method: 'GET',
    path: '/',
    operationId: 'getIndex',
    summary: 'Get the name of the service and the links to its documentation',
    tag: 'Health',
    auth: anonymous,
    responses: { 200: serviceIndex },
    handler: () => indexReply(service),
  });
