import * as z from 'zod';
import { secretsToRedact } from '../../src/agents/credentials/agent-credentials.js';
import { getAgent } from '../../src/agents/agents/agents.js';
import { InvalidCursorError } from '../../src/docker/containers/container-errors.js';
import { BadRequestError, NotFoundError } from '../../src/lib/errors.js';
import type { HostAccess } from '../../src/agents/hosts/host-access.js';
import { logHistory, type LogEvent } from '../../src/agents/logs/live-logs.js';
import { internalKey } from '../auth/internal-key.js';
import { area } from '../http/area.js';
import { reply } from '../http/reply.js';
import { eventStream, type ServerEvent } from '../http/sse.js';
import type { BackendDependencies } from './dependencies.js';

const logs = area({
  tag: 'Logs',
  auth: internalKey,
  params: z.object({ agentId: z.string().max(64).describe('The agent') }),
  errors: [404, 502, 503],
});

const cursorText = z
  .string()
  .min(1)
  .max(128)
  .describe('Cursor of a line: only lines after that line are returned');

const logLine = z
  .strictObject({
    timestamp: z.string(),
    stream: z.enum(['stdout', 'stderr']),
    line: z.string(),
  })
  .meta({ id: 'LogLine' });

/** Creates the `/api/logs/:agentId/*` endpoints (decision 21). */
export function logEndpoints({ directory, liveLogs, secrets }: BackendDependencies) {
  return [
    logs({
      method: 'GET',
      path: '/api/logs/:agentId/stream',
      operationId: 'streamLog',
      summary: "Stream an agent's log; resumes after Last-Event-ID or cursor",
      query: z.object({ cursor: cursorText.optional() }),
      headers: z.object({ 'last-event-id': cursorText.optional() }),
      responses: { 200: 'stream' },
      answerHeaders: ['X-Stream-Id'],
      async handler(request) {
        const { headers, query, signal, tenant } = request;
        const agent = await getAgent(tenant, request.params.agentId);
        const host = await directory.withDocker(agent.host);
        const redact = await secretsToRedact(tenant, secrets, agent.id);
        const since = headers['last-event-id'] ?? query.cursor;
        await checkCursor(host, agent.id, since);
        const { stream, events } = liveLogs.follow(host, agent, { since, redact, signal });
        const answer = eventStream(serverEvents(events));
        return { ...answer, headers: { ...answer.headers, 'X-Stream-Id': stream.streamId } };
      },
    }),
    logs({
      method: 'GET',
      path: '/api/logs/:agentId/history',
      operationId: 'readLogHistory',
      summary: "Read the last lines of an agent's log, or the lines after a cursor",
      query: z.object({
        limit: z.coerce
          .number()
          .int()
          .min(1)
          .max(1_000)
          .default(100)
          .describe('Maximum number of lines'),
        cursor: cursorText.optional(),
      }),
      responses: {
        200: z.strictObject({ lines: z.array(logLine), cursor: z.string().nullable() }),
      },
      async handler({ params: { agentId }, query, tenant }) {
        const agent = await getAgent(tenant, agentId);
        const host = await directory.withDocker(agent.host);
        const redact = await secretsToRedact(tenant, secrets, agent.id);
        const page = await refusingCursor(() =>
          logHistory(host, agent.id, { limit: query.limit, cursor: query.cursor, redact }),
        );
        const lines = page.lines.map(({ timestamp, stream, line }) => ({
          timestamp,
          stream,
          line,
        }));
        return reply(200, { lines, cursor: page.cursor ?? null });
      },
    }),
    logs({
      method: 'GET',
      path: '/api/logs/:agentId/active',
      operationId: 'listLogStreams',
      summary: "List the open streams of an agent's log",
      responses: {
        200: z.strictObject({
          streams: z.array(
            z.strictObject({
              streamId: z.string(),
              agentId: z.string(),
              startedAt: z.iso.datetime(),
            }),
          ),
        }),
      },
      async handler({ params: { agentId }, tenant }) {
        const agent = await getAgent(tenant, agentId);
        return reply(200, { streams: liveLogs.active(agent.id) });
      },
    }),
    logs({
      method: 'POST',
      path: '/api/logs/:agentId/stop',
      operationId: 'stopLogStream',
      summary: "Close a stream of an agent's log",
      body: z.object({ streamId: z.string().max(64) }),
      responses: { 200: z.strictObject({ success: z.literal(true), streamId: z.string() }) },
      async handler({ body, params: { agentId }, tenant }) {
        const agent = await getAgent(tenant, agentId);
        if (!liveLogs.stop(agent.id, body.streamId)) throw new NotFoundError('Stream not found');
        return reply(200, { success: true, streamId: body.streamId });
      },
    }),
  ];
}

/** Rejects an invalid cursor with 400 while the status is not sent yet. */
async function checkCursor(
  host: HostAccess,
  agentId: string,
  cursor: string | undefined,
): Promise<void> {
  if (cursor === undefined) return;
  await refusingCursor(() => logHistory(host, agentId, { limit: 1, cursor, redact: [] }));
}

async function refusingCursor<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof InvalidCursorError) throw new BadRequestError('cursor is invalid');
    throw error;
  }
}

async function* serverEvents(events: AsyncIterable<LogEvent>): AsyncGenerator<ServerEvent> {
  for await (const event of events) {
    if (event.kind === 'end') {
      yield { event: 'end', data: { reason: event.reason } };
    } else {
      const { cursor, line, stream, timestamp } = event.line;
      yield { id: cursor, event: 'log', data: { timestamp, stream, line } };
    }
  }
}
