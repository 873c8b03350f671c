import * as z from 'zod';
import {
  INSTALLATION_MODES,
  listInstallations,
  registerInstallation,
  type Installation,
  type NewInstallation,
} from '../../src/accounts/installations/installations.js';
import { NotFoundError } from '../../src/lib/errors.js';
import { internalKey } from '../auth/internal-key.js';
import { area } from '../http/area.js';
import { nextPageLink, pageQuery } from '../http/pagination.js';
import { reply } from '../http/reply.js';
import type { BackendDependencies } from './dependencies.js';
import { requestedBy } from './requested-by.js';

const PATH = '/api/installations';

/** Maximum number of installations of a page, also the default. */
const MAX_ROWS = 1_000;

const MAX_TOKEN_BYTES = 4_096;

const installations = area({ tag: 'Installations', auth: internalKey });

// PostgreSQL text cannot store NUL.
const storable = z.string().regex(/^[^\0]*$/);

const userId = storable.min(1).max(255).describe('Not verified; need not be an account');

const gatewayToken = storable
  .min(1)
  .max(MAX_TOKEN_BYTES)
  .refine((token) => Buffer.byteLength(token) <= MAX_TOKEN_BYTES, {
    error: `gatewayToken must have at most ${MAX_TOKEN_BYTES} bytes`,
  })
  .describe('Stored encrypted, and never shown');

const registered = {
  200: z.strictObject({
    success: z.literal(true),
    message: z.string(),
    dashboardUrl: z.string().describe("The installation's page of the web API"),
  }),
};

const item = z
  .strictObject({
    userId: z.string(),
    mode: z.enum(INSTALLATION_MODES),
    registeredAt: z.iso.datetime(),
    lastSeen: z.iso.datetime(),
    status: z.enum(['active', 'inactive']).describe('Inactive 15 minutes after `lastSeen`'),
  })
  .meta({ id: 'Installation' });

const position = z.tuple([z.iso.datetime(), storable]);

type Registering = Parameters<typeof requestedBy>[0];

/** Creates `POST /api/register-home|link` and `GET /api/installations` (spec 4.12). */
export function installationEndpoints({ database, secrets, settings }: BackendDependencies) {
  const register = async (request: Registering, installation: NewInstallation) => {
    const { caller } = request;
    // A caller that speaks for a user may only register that user's installation.
    if (caller.kind === 'internal' && caller.user && caller.user.id !== installation.userId) {
      throw new NotFoundError('User not found');
    }
    await registerInstallation(database, secrets, installation, requestedBy(request));
    const dashboard = new URL('/dashboard', settings.http.webUrl);
    dashboard.searchParams.set('installation', installation.userId);
    return reply(200, {
      success: true,
      message: 'The installation is registered',
      dashboardUrl: dashboard.href,
    });
  };

  return [
    installations({
      method: 'POST',
      path: '/api/register-home',
      operationId: 'registerHome',
      summary: 'Register an installation',
      idempotent: true,
      body: z.object({
        userId,
        mode: z.enum(INSTALLATION_MODES).default('home'),
        gatewayToken: gatewayToken.optional(),
      }),
      responses: registered,
      errors: [404, 409],
      handler: (request) => register(request, request.body),
    }),
    installations({
      method: 'POST',
      path: '/api/register-link',
      operationId: 'registerLink',
      summary: 'Register a linked installation',
      idempotent: true,
      body: z.object({
        userId,
        mode: z.unknown().optional().describe('Ignored: always `link`'),
        gatewayToken: gatewayToken.optional(),
      }),
      responses: registered,
      errors: [404, 409],
      handler: (request) => register(request, { ...request.body, mode: 'link' }),
    }),
    installations({
      method: 'GET',
      path: PATH,
      operationId: 'listInstallations',
      summary: 'List installations, last seen first',
      query: z.object(pageQuery(position, MAX_ROWS)),
      responses: {
        200: z.strictObject({
          success: z.literal(true),
          count: z.int().describe('Number of installations on this page'),
          installations: z.array(item),
        }),
      },
      async handler({ query, tenant }) {
        const { cursor, limit } = query;
        const after = cursor && { lastSeen: cursor[0], userId: cursor[1] };
        const { items, next } = await listInstallations(tenant, { limit, after });
        return reply(
          200,
          { success: true, count: items.length, installations: items.map(present) },
          nextPageLink(PATH, query, next && [next.lastSeen, next.userId]),
        );
      },
    }),
  ];
}

const present = ({ lastSeen, mode, registeredAt, status, userId }: Installation) => ({
  userId,
  mode,
  registeredAt: registeredAt.toISOString(),
  lastSeen: lastSeen.toISOString(),
  status,
});
