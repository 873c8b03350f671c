import * as z from 'zod';

export const containerStats = z
  .strictObject({
    cpuPercent: z.number().describe('CPU usage; 100 is one core fully used'),
    memoryBytes: z.number(),
    memoryLimitBytes: z.number(),
    networkReceivedBytes: z.number(),
    networkSentBytes: z.number(),
    processes: z.int(),
    readAt: z.iso.datetime(),
  })
  .meta({ id: 'ContainerStats' });
