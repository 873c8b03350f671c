import * as z from 'zod';
import { ForbiddenError } from '../../src/lib/errors.js';
import { icecastSecret } from '../auth/icecast.js';
import { formBody } from '../http/body-format.js';
import { area } from '../http/area.js';
import { reply } from '../http/reply.js';
import type { BackendDependencies } from './dependencies.js';
import { RADIO_LIMIT } from './limits.js';

const radio = area({ tag: 'Radio', auth: icecastSecret });

/** Creates `POST /api/radio/authorize`, which Icecast calls for each source and each title. */
export function radioEndpoints({ radioAdmission }: Pick<BackendDependencies, 'radioAdmission'>) {
  return [
    radio({
      method: 'POST',
      path: '/api/radio/authorize',
      operationId: 'authorizeSource',
      summary: 'Authorize a source of the radio',
      limit: RADIO_LIMIT,
      body: formBody(
        z.object({
          action: z.literal('stream_auth'),
          mount: z.string().max(1_000),
          user: z.string().max(1_000).default(''),
          pass: z.string().max(1_000).default(''),
          admin: z.literal('1').optional().describe('Present if the source has sent a new title'),
        }),
      ),
      responses: { 200: 'empty' },
      answerHeaders: ['Icecast-Auth-User'],
      errors: [403],
      async handler({ body: { admin, mount, pass: password, user } }) {
        const isTitle = admin !== undefined;
        if (!(await radioAdmission.admits({ mount, user, password, isTitle }))) {
          throw new ForbiddenError('The source is not admitted');
        }
        // Icecast admits only by this header, regardless of the status: no other answer has it.
        return reply(200, undefined, { 'Icecast-Auth-User': '1' });
      },
    }),
  ];
}
