// Checks a URDF before the parser sees it: the parser drops what it cannot read (shapes, inertias, links that hang in a cycle), and
// does not name what it refuses.
#pragma once

#include <string>

namespace tinyxml2 {
class XMLDocument;
class XMLElement;
}  // namespace tinyxml2

namespace coulomb {

/// Reads text into the document. One complete <robot> element, well-formed, without DOCTYPE; else throws std::invalid_argument that opens
/// with `source` and names the line.
const tinyxml2::XMLElement& parse_robot(const std::string& text, const std::string& source,
                                        tinyxml2::XMLDocument& document);

/// One tree of uniquely named links; numbers are finite and as many as wanted; collision shapes are known. mass_of_shapes: an <inertial> may
/// leave its mass to the link's shapes. Throws std::invalid_argument naming source, element and value.
void check_urdf(const tinyxml2::XMLElement& robot, const std::string& source, bool mass_of_shapes);

}  // namespace coulomb
