import type { AgentContainerSpec } from '../../src/containers/container-spec.js';
import { DockerContainers } from '../../src/containers/docker-containers.js';
import type { DockerContainersOptions } from '../../src/containers/docker-containers.js';

/** The product's adapter, which also puts the test run's label on all that it makes. */
export class LabelledContainers extends DockerContainers {
  constructor(
    options: DockerContainersOptions,
    private readonly labels: Readonly<Record<string, string>>,
  ) {
    super(options);
  }

  override ensureNetwork(spec: AgentContainerSpec) {
    return super.ensureNetwork(this.labelled(spec));
  }

  override ensureVolume(spec: AgentContainerSpec) {
    return super.ensureVolume(this.labelled(spec));
  }

  override renewVolume(spec: AgentContainerSpec) {
    return super.renewVolume(this.labelled(spec));
  }

  override copyVolume(spec: AgentContainerSpec, from: string, signal?: AbortSignal) {
    return super.copyVolume(this.labelled(spec), from, signal);
  }

  override ensureContainer(spec: AgentContainerSpec) {
    return super.ensureContainer(this.labelled(spec));
  }

  private labelled(spec: AgentContainerSpec): AgentContainerSpec {
    return { ...spec, labels: { ...spec.labels, ...this.labels } };
  }
}
