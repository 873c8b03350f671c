/** Base class of errors by Docker or by the platform's rules for Docker. */
export class ContainerError extends Error {
  override readonly name: string = 'ContainerError';
}

/** Docker is unreachable or timed out. The call may or may not have taken effect. */
export class DockerUnavailableError extends ContainerError {
  override readonly name = 'DockerUnavailableError';
}

/** A container, network or volume has the platform's name but not its labels. It is never touched. */
export class ForeignContainerError extends ContainerError {
  override readonly name = 'ForeignContainerError';

  constructor(kind: 'container' | 'network' | 'volume', name: string) {
    super(`The ${kind} ${name} exists and belongs to another owner; remove or rename it`);
  }
}

/**
 * Containers with the labels of one agent, none of them with its name: they were renamed or copied manually.
 */
export class SeveralContainersError extends ContainerError {
  override readonly name = 'SeveralContainersError';

  constructor(own: string, found: readonly string[]) {
    super(
      `The containers ${found.join(' and ')} have the labels of one agent, and none has the name ${own}: ` +
        `remove all but the agent's own`,
    );
  }
}

export class PortTakenError extends ContainerError {
  override readonly name = 'PortTakenError';

  constructor(port: number, options?: ErrorOptions) {
    super(`Port ${port} is in use on the host`, options);
  }
}

export class SubnetTakenError extends ContainerError {
  override readonly name = 'SubnetTakenError';

  constructor(subnet: string, options?: ErrorOptions) {
    super(`Subnet ${subnet} overlaps a network in use`, options);
  }
}

export class ImageUnavailableError extends ContainerError {
  override readonly name = 'ImageUnavailableError';

  constructor(image: string, options?: ErrorOptions) {
    super(`Image ${image} is not on the engine and cannot be pulled`, options);
  }
}

export class ContainerMissingError extends ContainerError {
  override readonly name = 'ContainerMissingError';

  constructor(agentId: string) {
    super(`Agent ${agentId} has no container`);
  }
}

/** Only an agent's first creation may create the volume of its memory. */
export class MemoryMissingError extends ContainerError {
  override readonly name = 'MemoryMissingError';

  constructor(volume: string) {
    super(`The agent cannot run, because its memory is missing: there is no volume ${volume}`);
  }
}

/** The volume exists with another maker. It is never touched. */
export class VolumeTakenError extends ContainerError {
  override readonly name = 'VolumeTakenError';

  constructor(volume: string) {
    super(`The volume ${volume} exists and has another maker; it stays unchanged`);
  }
}

export class DiskLowError extends ContainerError {
  override readonly name = 'DiskLowError';

  constructor(free: number, floor: number) {
    super(
      `Only ${mib(free)} MiB of the host's disk are free, but ${mib(floor)} MiB must stay free`,
    );
  }
}

export class VolumeTooLargeError extends ContainerError {
  override readonly name = 'VolumeTooLargeError';

  constructor(limit: number) {
    super(`The memory is larger than the copy limit of ${mib(limit)} MiB`);
  }
}

const mib = (bytes: number): number => Math.floor(bytes / 1024 ** 2);

export class VolumeMissingError extends ContainerError {
  override readonly name = 'VolumeMissingError';

  constructor(volume: string) {
    super(`The volume ${volume} does not exist`);
  }
}

/**
 * Docker's error without a class of its own here. Agents' owners see failures, and Docker's text names host
 * paths and addresses: only the cause contains that text, for operators.
 */
export class DockerRefusedError extends ContainerError {
  override readonly name = 'DockerRefusedError';

  constructor(
    readonly statusCode: number,
    readonly said: string,
    cause: Error = new Error(said),
  ) {
    super('The container engine refused this step (DOCKER_REFUSED)', { cause });
  }
}

export class InvalidCursorError extends ContainerError {
  override readonly name = 'InvalidCursorError';

  constructor() {
    super('The log cursor is invalid: use the cursor of a returned line');
  }
}
