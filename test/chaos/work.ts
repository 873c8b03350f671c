import { WorkflowNotFoundError } from '@temporalio/client';
import type { ResendStandIn } from '../../dev/email/resend-stand-in.js';
import type { VideoProviderStandIn } from '../../dev/video/video-provider.js';
import type { CarefulClient } from './careful-client.js';
import type { Site } from './site.js';
import type { WorkPlan } from './work-plan.js';

/** Agents of one owner, the owner's client of the web API, and the providers of the platform. */
export interface WorkSite extends Site {
  readonly owner: CarefulClient;
  /** The owner's verified address. */
  readonly email: string;
  readonly agents: readonly string[];
  readonly webUrl: string;
  readonly videos: VideoProviderStandIn;
  /** Folder of the files of videos. */
  readonly mediaRoot: string;
  readonly resend: ResendStandIn;
  readonly radio: {
    /** Path of the program that is the source. */
    readonly ffmpeg: string;
    readonly adminPassword: string;
  };
}

/** Work that was requested: its end and what is wrong afterwards. */
export interface Work {
  /** Returns the state in which the work ended; undefined before the end. */
  end(): Promise<string | undefined>;
  problems(): Promise<string[]>;
  /** Removes what the work left for its owner. */
  remove?(): Promise<void>;
}

/** Requests the work of a round; `key` identifies its requests and texts. */
export type RequestWork = (site: WorkSite, key: string, plan: WorkPlan) => Promise<Work>;

/** Returns a problem if a run has not ended. */
export async function stillRuns({ temporal }: Site, workflowId: string): Promise<string[]> {
  try {
    const { status } = await temporal.workflow.getHandle(workflowId).describe();
    return status.name === 'RUNNING' ? [`${workflowId} still runs`] : [];
  } catch (error) {
    if (error instanceof WorkflowNotFoundError) return [`${workflowId} is missing`];
    throw error;
  }
}
