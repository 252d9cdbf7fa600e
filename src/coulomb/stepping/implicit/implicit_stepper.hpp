// The implicit steppers, and penalty contact with semi-implicit steps (implicit_step.hpp), whose constraints are springs as well.
#pragma once

#include "coulomb/stepping/implicit/implicit_step.hpp"
#include "coulomb/stepping/stepper.hpp"

namespace coulomb {

class ImplicitStepper final : public Stepper {
 public:
  constexpr ImplicitStepper(const char* name, ImplicitScheme scheme) : name_(name), scheme_(scheme) {}

  const char* name() const override { return name_; }
  ContactLaw usual_contact() const override;
  bool fits(const StepOptions& options) const override;
  bool has_springs() const override { return true; }
  bool has_gradient(GradientMode mode) const override { return mode == GradientMode::exact; }

  bool step(const Model& model, const StepOptions& options, StepWorkspace& workspace, StepMemory& memory,
            StepRecord& record) const override;
  std::unique_ptr<StepGradient> make_gradient(const Model& model, const StepOptions& options) const override;

  int num_states() const override { return scheme_ == ImplicitScheme::bdf2 ? 2 : 1; }
  StepPoint contacts_at() const override { return StepPoint::end; }
  StepPoint dynamics_at() const override { return has_explicit_dynamics() ? StepPoint::start : StepPoint::end; }
  const char* untold(StepForce force) const override;

  bool keeps_steps(const StepOptions&) const override { return true; }
  std::size_t kept_bytes(const StepRecord& record) const override;
  void keep(const StepRecord& record, std::byte* to) const override;
  void recall(const Model& model, const StepOptions& options, const std::byte* kept, StepRecord& record) const override;
  bool step_again(const Model& model, const StepOptions& options, StepWorkspace& workspace, StepMemory& memory,
                  const std::byte* kept, StepRecord& record) const override;
  bool recalls_contacts() const override { return false; }

 private:
  bool has_explicit_dynamics() const { return scheme_ == ImplicitScheme::semi_implicit; }

  const char* name_;
  ImplicitScheme scheme_;  // of a step that goes on from another
};

inline constexpr ImplicitStepper penalty_stepper("semi_implicit", ImplicitScheme::semi_implicit);
inline constexpr ImplicitStepper bdf1_stepper("bdf1", ImplicitScheme::bdf1);
inline constexpr ImplicitStepper bdf2_stepper("bdf2", ImplicitScheme::bdf2);

}  // namespace coulomb
